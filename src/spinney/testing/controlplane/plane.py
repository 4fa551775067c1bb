"""The control plane itself: what is started, in which order, with which flags.

Data live on a memory file system where the machine has room on one, and etcd does not sync: a plane is thrown away, and
a suite's time is mostly writes. All programs end with the process that started them, however that ends
(:mod:`.tether`). The node lifecycle controller is off, so that simulated nodes alone say how nodes fare.
"""

import asyncio
import secrets
import shutil
import ssl
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import yaml

from spinney.api.struct import JSON
from spinney.kube.client import Client
from spinney.kube.config import load_kubeconfig
from spinney.runtime import Runtime, SystemClock
from spinney.runtime.private_files import write_private
from spinney.server.http.serving import kubeconfig_text
from spinney.testing.controlplane.binaries import Binaries, find_binaries
from spinney.testing.controlplane.certificates import CertificateFiles
from spinney.testing.controlplane.features import MINORS, GangApi, gang_api
from spinney.testing.controlplane.process import Ports, ServerProcess
from spinney.testing.controlplane.tether import Tether

_LOOPBACK = "127.0.0.1"
_START = 120.0  # seconds a program may take to become ready: a busy two-core machine needs a fraction of it
_MEMORY = Path("/dev/shm")  # noqa: S108 - a private directory is made in it
_MEMORY_NEEDED = 1 << 30  # etcd alone reserves 64 MB ahead of its log

_CONTROLLERS_OFF = (
    "node-lifecycle-controller",  # the simulated nodes say how they fare
    "node-ipam-controller",
    "persistentvolume-attach-detach-controller",  # nothing attaches here, and it would hold volumes back
    "horizontal-pod-autoscaler-controller",  # there are no metrics to scale by
    "certificatesigningrequest-approving-controller",
    "certificatesigningrequest-cleaner-controller",
    "certificatesigningrequest-signing-controller",
)


class ControlPlane:
    """One real control plane of a Kubernetes minor, from :meth:`start` to :meth:`stop`. Mutable.

    Usable as a context manager, sync or async. After the start ``kubeconfig`` names a file (mode 0600) for an
    administrator, and ``url``, ``token`` and ``ca`` say the same in parts.
    """

    url: str
    token: str
    ca: Path
    kubeconfig: Path

    _binaries: Binaries
    _authority: CertificateFiles
    _port: int
    _etcd_url: str
    _service_account_key: Path

    def __init__(self, minor: str = MINORS[-1], *, controller_manager: bool = True, crds: Sequence[JSON] = ()) -> None:
        """Describe a plane; ``crds`` are served from the start.

        The garbage collector looks for new kinds every half minute only: objects of kinds that are installed later may
        outlive their owners that long.
        """
        self.minor = minor
        self._crds = crds
        self.gangs: GangApi = gang_api(minor)
        self._clock = SystemClock()
        self._with_controller_manager = controller_manager
        self._ports = Ports()
        self._processes: list[ServerProcess] = []
        self._directory: Path | None = None
        self._tether: Tether | None = None

    @property
    def directory(self) -> Path:
        """Return where keys, configuration and logs are; gone after :meth:`stop`."""
        if self._directory is None:
            raise RuntimeError(f"the control plane {self.minor} is not running: call start() first")
        return self._directory

    @property
    def pids(self) -> tuple[int, ...]:
        """Return the process ids of its programs, in the order of their start."""
        return tuple(process.pid for process in self._processes)

    def start(self) -> None:
        """Start everything and return when it is ready; on failure end what was started and say what went wrong."""
        self._binaries = find_binaries(self.minor)
        self._directory = Path(tempfile.mkdtemp(prefix=f"spinney-{self.minor}-", dir=_memory_directory()))
        self._tether = Tether(self._directory)
        try:
            self._write_credentials()
            self._start_etcd()
            self._start_apiserver()
            if self._crds:
                self._install_crds()
            if self._with_controller_manager:
                self._start_controller_manager()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End all programs, last started first, and remove their data. Stopping twice does nothing."""
        while self._processes:
            self._processes.pop().stop()
        self._ports.release()
        if self._tether is not None:
            self._tether.release()
            self._tether = None
        if self._directory is not None:
            shutil.rmtree(self._directory)
            self._directory = None

    @property
    def kubectl(self) -> Path:
        """Return the kubectl of this minor."""
        return self._binaries.kubectl

    def connect(self, runtime: Runtime) -> Client:
        """Return a client with an administrator's rights; the caller closes its transport."""
        return Client(load_kubeconfig(self.kubeconfig, runtime=runtime), runtime)

    def kubeconfig_for(self, user: str, groups: tuple[str, ...] = ()) -> Path:
        """Write a kubeconfig with which a client is ``user``, by certificate; RBAC decides what that user may do."""
        certificate, key = self._authority.client(user, groups)
        return self._write_kubeconfig(user, {"client-certificate": str(certificate), "client-key": str(key)})

    @contextmanager
    def scheduler(self, configuration: JSON | None = None) -> Iterator[None]:
        """Run kube-scheduler for the time of the ``with`` block, with this KubeSchedulerConfiguration."""
        ports = Ports()
        try:
            process = self._start_scheduler(configuration if configuration is not None else {}, ports)
            try:
                yield
            finally:
                self._processes.remove(process)
                process.stop()
        finally:
            ports.release()

    def log(self, program: str) -> str:
        """Return what a program (``kube-apiserver``, ...) has logged so far."""
        return (self.directory / f"{program}.log").read_text(errors="replace")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.stop)

    # -- credentials --------------------------------------------------------------------------------------------------

    def _write_credentials(self) -> None:
        self._authority = CertificateFiles(self.directory, now=self._clock.now())
        self.ca = self._authority.path
        self._port = self._ports.take()
        self.url = f"https://{_LOOPBACK}:{self._port}"
        self.token = secrets.token_urlsafe(24)
        write_private(self.directory / "tokens.csv", f'{self.token},admin,admin,"system:masters"\n'.encode())
        self.kubeconfig = self._write_kubeconfig("admin", {"token": self.token})

    def _write_kubeconfig(self, user: str, credentials: JSON) -> Path:
        path = self.directory / f"{user.replace(':', '-')}.kubeconfig"
        cluster = {"server": self.url, "certificate-authority": str(self.ca)}
        write_private(path, kubeconfig_text(cluster, credentials).encode())
        return path

    # -- programs -----------------------------------------------------------------------------------------------------

    def _start_etcd(self) -> None:
        client, peer = (f"http://{_LOOPBACK}:{self._ports.take()}" for _ in range(2))
        self._etcd_url = client
        etcd = self._launch(
            "etcd",
            self._binaries.etcd,
            name="default",
            data_dir=self.directory / "etcd",
            unsafe_no_fsync="true",
            socket_reuse_port="true",
            listen_client_urls=client,
            advertise_client_urls=client,
            listen_peer_urls=peer,
            initial_advertise_peer_urls=peer,
            initial_cluster=f"default={peer}",
            log_level="warn",
        )
        etcd.wait_until_ready(f"{client}/health", within=_START)

    def _start_apiserver(self) -> None:
        hosts = ["localhost", _LOOPBACK, "10.0.0.1", "kubernetes", "kubernetes.default", "kubernetes.default.svc"]
        certificate, key = self._authority.serving("kube-apiserver", hosts)
        verifying, self._service_account_key = self._authority.key_pair("service-account")
        apiserver = self._launch(
            "kube-apiserver",
            self._binaries.kube_apiserver,
            etcd_servers=self._etcd_url,
            bind_address=_LOOPBACK,
            advertise_address=_LOOPBACK,
            secure_port=self._port,
            permit_port_sharing="true",
            tls_cert_file=certificate,
            tls_private_key_file=key,
            client_ca_file=self.ca,
            token_auth_file=self.directory / "tokens.csv",
            authorization_mode="RBAC",
            service_account_issuer=self.url,
            service_account_key_file=verifying,
            service_account_signing_key_file=self._service_account_key,
            service_cluster_ip_range="10.0.0.0/16",
            endpoint_reconciler_type="none",  # the loopback address is not a valid endpoint
            allow_privileged="true",
            feature_gates=self.gangs.feature_gates,
            runtime_config=self.gangs.runtime_config,
            # Without the node lifecycle controller nobody would take the not-ready taint of a new node away.
            disable_admission_plugins="TaintNodesByCondition",
        )
        trust = ssl.create_default_context(cafile=str(self.ca))
        apiserver.wait_until_ready(f"{self.url}/readyz", within=_START, context=trust)

    def _install_crds(self) -> None:
        listed = yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": list(self._crds)})
        for arguments in (
            ("apply", "--server-side", "--field-manager=spinney-crds", "--filename=-"),
            ("wait", "--for=condition=Established", f"--timeout={_START:.0f}s", "--filename=-"),
        ):
            subprocess.run(  # noqa: S603 - the kubectl of the control plane
                [self.kubectl, "--kubeconfig", self.kubeconfig, *arguments],
                input=listed,
                capture_output=True,
                text=True,
                check=True,
            )

    def _start_controller_manager(self) -> None:
        kubeconfig = self.kubeconfig_for("system:kube-controller-manager")
        manager = self._launch_component(
            "kube-controller-manager",
            self._binaries.kube_controller_manager,
            kubeconfig,
            self._ports,
            kubeconfig=kubeconfig,
            feature_gates=gang_api(MINORS[-1]).feature_gates,  # it is always of the newest minor
            controllers=",".join(["*", *(f"-{name}" for name in _CONTROLLERS_OFF)]),
            service_account_private_key_file=self._service_account_key,
            root_ca_file=self.ca,
            use_service_account_credentials="true",
            leader_elect="false",
            kube_api_qps=500,
            kube_api_burst=1000,
            concurrent_gc_syncs=4,
            namespace_sync_period="30s",
        )
        # It is healthy before its controllers run, and no pod is admitted to a namespace without a service account.
        account = f"{self.url}/api/v1/namespaces/default/serviceaccounts/default"
        trust = ssl.create_default_context(cafile=str(self.ca))
        manager.wait_until_ready(account, within=_START, context=trust, token=self.token)

    def _start_scheduler(self, configuration: JSON, ports: Ports) -> ServerProcess:
        kubeconfig = self.kubeconfig_for("system:kube-scheduler")
        complete = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            **configuration,
            "clientConnection": {
                "kubeconfig": str(kubeconfig),
                "qps": 1000,
                "burst": 2000,
                **configuration.get("clientConnection", {}),
            },
        }
        path = self.directory / "kube-scheduler.yaml"
        path.write_text(yaml.safe_dump(complete))
        return self._launch_component(
            "kube-scheduler",
            self._binaries.kube_scheduler,
            kubeconfig,
            ports,
            feature_gates=self.gangs.feature_gates,
            config=path,
        )

    def _launch_component(
        self, name: str, binary: Path, identity: Path, ports: Ports, /, **flags: object
    ) -> ServerProcess:
        """Start a client of the API server that serves its own health, and wait for that."""
        port = ports.take()
        certificate, key = self._authority.serving(name, ["localhost", _LOOPBACK])
        process = self._launch(
            name,
            binary,
            **flags,
            authentication_kubeconfig=identity,
            authorization_kubeconfig=identity,
            bind_address=_LOOPBACK,
            secure_port=port,
            permit_port_sharing="true",
            tls_cert_file=certificate,
            tls_private_key_file=key,
        )
        trust = ssl.create_default_context(cafile=str(self.ca))
        process.wait_until_ready(f"https://{_LOOPBACK}:{port}/healthz", within=_START, context=trust)
        return process

    def _launch(self, name: str, binary: Path, /, **flags: object) -> ServerProcess:
        arguments = [f"--{flag.replace('_', '-')}={value}" for flag, value in flags.items()]
        assert self._tether is not None, "a running plane has a tether"
        command: list[str | Path] = [binary, *arguments]
        process = ServerProcess(name, command, directory=self.directory, clock=self._clock, tether=self._tether)
        self._processes.append(process)
        return process


def _memory_directory() -> Path | None:
    """Return a memory file system with room for etcd, or None for the default temporary directory."""
    roomy = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _MEMORY_NEEDED
    return _MEMORY if roomy else None

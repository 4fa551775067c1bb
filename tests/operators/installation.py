"""Installing operators on an API server, embedded or real, and running their controllers beside it.

What is installed is what is published, CRDs and webhooks; only where the webhooks are reached is written anew: on
loopback, where the controllers run, with certificates made for the test.
"""

import asyncio
import base64
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path

import yaml

from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.kube.client import Client
from spinney.kube.crds import install_crds
from spinney.runtime import SystemClock
from spinney.runtime.certificates import Authority
from spinney.testing.controlplane.process import ServerProcess, free_port
from spinney.testing.controlplane.tether import Tether
from tests.operators.published import Published, published

_DATA = Path(__file__).resolve().parents[1] / "data" / "operators"
_LOOPBACK = "127.0.0.1"
_CERTIFICATES = "k8s-webhook-server/serving-certs"
"""Where controllers look for certificates, below TMPDIR unless they are told."""
_WEBHOOKS = {
    kind: Resource("admissionregistration.k8s.io", "v1", kind, f"{kind.lower()}s", namespaced=False)
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
}
_START = 600.0  # seconds a controller may take to become ready on a busy machine
_AGAIN = """
trap 'kill $controller; wait $controller; exit 0' TERM
for life in 1 2 3; do
  timeout --foreground --kill-after=10 0 "$@" & controller=$!
  wait $controller && exit 0
  sleep 1
done
exit 1
"""
"""Starts a controller anew when it ends, as its Deployment would: it gives up if its caches take minutes to fill."""


@dataclass(frozen=True)
class Ports:
    """Where a controller serves its webhooks and says that it is well."""

    webhooks: int
    health: int


@dataclass(frozen=True)
class Recipe:
    """What belongs to one operator, by paths in its source, and how its controller is started."""

    crds: tuple[str, ...]
    without: tuple[str, ...] = ()
    """CRDs of these names are left out."""
    webhooks: str = ""
    configuration: Callable[[Ports], JSON] | None = None
    """The content of the file that ``--config`` names."""
    flags: Callable[[Ports, Path], list[str]] = lambda ports, kubeconfig: []
    health: str = "/readyz"
    """Where it says that it is well; nowhere if empty."""
    needs: tuple[str, ...] = ()

    def installs(self, found: JSON) -> bool:
        """Tell whether an object beside the CRDs is one that is to be installed."""
        return found["kind"] == "CustomResourceDefinition" and found["metadata"]["name"] not in self.without


def _manager(api_version: str, certificates: str, **webhook: str) -> Callable[[Ports], JSON]:
    """Return the configuration of a manager that serves webhooks with certificates that it is given."""

    def configuration(ports: Ports) -> JSON:
        return {
            "apiVersion": api_version,
            "kind": "Configuration",
            "health": {"healthProbeBindAddress": f"{_LOOPBACK}:{ports.health}"},
            "metrics": {"bindAddress": "0"},
            "webhook": {"host": _LOOPBACK, "port": ports.webhooks, **webhook},
            "leaderElection": {"leaderElect": False},
            certificates: {"enable": False},
            "clientConnection": {"qps": 500, "burst": 500},
        }

    return configuration


RECIPES: Mapping[str, Recipe] = {
    "jobset": Recipe(
        crds=("config/components/crd/bases",),
        webhooks="config/components/webhook/manifests.yaml",
        configuration=_manager("config.jobset.x-k8s.io/v1alpha1", "internalCertManagement", certDir=_CERTIFICATES),
    ),
    "lws": Recipe(
        crds=("config/crd/bases",),
        webhooks="config/webhook/manifests.yaml",
        configuration=_manager("config.lws.x-k8s.io/v1alpha1", "internalCertManagement", certDir=_CERTIFICATES),
    ),
    "trainer": Recipe(
        crds=("manifests/base/crds",),
        webhooks="manifests/base/webhook/manifests.yaml",
        configuration=_manager("config.trainer.kubeflow.org/v1alpha1", "certManagement"),
        needs=("jobset",),
    ),
    "kueue": Recipe(
        crds=("config/components/crd/bases",),
        webhooks="config/components/webhook/manifests.yaml",
        configuration=lambda ports: {
            **_manager("config.kueue.x-k8s.io/v1beta2", "internalCertManagement", certDir=_CERTIFICATES)(ports),
            "integrations": {"frameworks": ["batch/job", "jobset.x-k8s.io/jobset", "pod"]},
        },
        needs=("jobset",),
    ),
    "mpi": Recipe(
        crds=("manifests/base/kubeflow.org_mpijobs.yaml",),
        flags=lambda ports, kubeconfig: [f"--kubeConfig={kubeconfig}", "--kube-api-qps=500", "--kube-api-burst=500"],
        health="",
    ),
    "training": Recipe(
        crds=("manifests/base/crds",),
        without=("mpijobs.kubeflow.org",),  # of a version that the MPI operator does not serve
        flags=lambda ports, kubeconfig: [f"--health-probe-bind-address={_LOOPBACK}:{ports.health}"],
    ),
    "kuberay": Recipe(
        crds=("config/crd/bases",),
        flags=lambda ports, kubeconfig: [f"--health-probe-bind-address={_LOOPBACK}:{ports.health}"],
    ),
    "karpenter": Recipe(
        crds=("pkg/apis/crds", "kwok/apis/crds"),
        flags=lambda ports, kubeconfig: [
            f"--health-probe-port={ports.health}",
            f"--instance-types-file-path={_DATA / 'instance-types.json'}",
        ],
    ),
}


@dataclass
class Installation:
    """The operators of one API server. Mutable: they are installed when a test first asks, and stay until the end."""

    kubeconfig: Path
    directory: Path
    _clock: SystemClock = field(default_factory=SystemClock)
    _running: dict[str, ServerProcess] = field(default_factory=dict)
    _webhooks: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """Kind and name of the webhook configurations of each operator."""
    _tether: Tether = field(default_factory=Tether)

    async def install(self, name: str, client: Client) -> None:
        """Apply what an operator publishes and run its controller, those it needs first. Waits until it is ready.

        Our definitions come first: some operators look at their start which PodGroups there are, and it must not matter
        which test is first on a cluster.
        """
        if name in self._running:
            return
        await install_crds(client)
        recipe = RECIPES[name]
        for needed in recipe.needs:
            await self.install(needed, client)
        operator = await asyncio.to_thread(published, name)
        ports = Ports(free_port(), free_port())
        found = (each for path in recipe.crds for each in operator.documents(path))
        await install_crds(client, [each for each in found if recipe.installs(each)])
        process = self._start(operator, recipe, ports)
        if recipe.health:
            ready = f"http://{_LOOPBACK}:{ports.health}{recipe.health}"
            await asyncio.to_thread(process.wait_until_ready, ready, within=_START)
        for webhooks in operator.documents(recipe.webhooks) if recipe.webhooks else ():
            reached = self._reached(webhooks, operator, ports)
            await asyncio.to_thread(self._wait_until_served, process, reached)
            await client.apply(_WEBHOOKS[webhooks["kind"]], reached)
            self._webhooks.setdefault(name, []).append((webhooks["kind"], reached["metadata"]["name"]))

    async def remove(self, name: str, client: Client) -> None:
        """Take an operator's webhooks away and end its controller; its CRDs stay."""
        for kind, webhooks in self._webhooks.pop(name, ()):
            await client.delete(_WEBHOOKS[kind], webhooks)
        await asyncio.to_thread(self._running.pop(name).stop)

    def logs(self) -> str:
        """Return what the controllers have logged last."""
        return "\n".join(f"{name} logged: {_end(process)}" for name, process in self._running.items())

    def stop(self) -> None:
        """End the controllers."""
        while self._running:
            self._running.popitem()[1].stop()
        self._tether.release()

    def _start(self, operator: Published, recipe: Recipe, ports: Ports) -> ServerProcess:
        home, certificates = self.directory / operator.name, self._certificates(operator.name)
        certificates.mkdir(parents=True, exist_ok=True)
        authority = Authority("spinney-test-operators", now=self._clock.now())
        pair = authority.serving([_LOOPBACK])
        for file, content in (("tls.crt", pair.certificate), ("tls.key", pair.key), ("ca.crt", authority.pem)):
            (certificates / file).touch(mode=0o600)
            (certificates / file).write_bytes(content)
        arguments = recipe.flags(ports, self.kubeconfig)
        if recipe.configuration is not None:
            configuration = home / "configuration.yaml"
            configuration.write_text(yaml.safe_dump(recipe.configuration(ports)))
            arguments.append(f"--config={configuration}")
        process = ServerProcess(
            operator.name,
            ["sh", "-c", _AGAIN, operator.name, operator.controller, *arguments],
            directory=home,
            clock=self._clock,
            tether=self._tether,
            environment={"KUBECONFIG": str(self.kubeconfig), "TMPDIR": str(home), "ENABLE_WEBHOOKS": ""},
        )
        self._running[operator.name] = process
        return process

    def _reached(self, configuration: JSON, operator: Published, ports: Ports) -> JSON:
        """Return a webhook configuration whose webhooks are reached where the controller runs."""
        authority = base64.b64encode((self._certificates(operator.name) / "ca.crt").read_bytes()).decode()
        webhooks = []
        for webhook in configuration["webhooks"]:
            url = f"https://{_LOOPBACK}:{ports.webhooks}{webhook['clientConfig']['service']['path']}"
            webhooks.append({**webhook, "clientConfig": {"url": url, "caBundle": authority}})
        metadata = {**configuration["metadata"], "name": f"{operator.name}-{configuration['metadata']['name']}"}
        return {**configuration, "metadata": metadata, "webhooks": webhooks}

    def _wait_until_served(self, process: ServerProcess, configuration: JSON) -> None:
        """Wait until every webhook answers: a controller may listen, and say it is ready, before it knows the paths."""
        deadline = self._clock.monotonic() + _START
        trust = ssl.create_default_context(cafile=str(self._certificates(process.name) / "ca.crt"))
        waiting = [webhook["clientConfig"]["url"] for webhook in configuration["webhooks"]]
        while waiting:
            if _answers(waiting[-1], trust):
                waiting.pop()
                continue
            assert process.alive, f"{process.name} ended: {_end(process)}"
            assert self._clock.monotonic() < deadline, f"{process.name} does not serve {waiting[-1]}"
            time.sleep(0.05)

    def _certificates(self, name: str) -> Path:
        return self.directory / name / _CERTIFICATES


def _end(process: ServerProcess) -> str:
    """Return what a program has logged last."""
    return process.log.read_text(errors="replace")[-4000:]


def _answers(url: str, trust: ssl.SSLContext) -> bool:
    """Say whether a webhook knows its path; what it is sent here is no review, which it may well say."""
    request = urllib.request.Request(url, data=b"{}", headers={"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=10, context=trust):
            return True
    except urllib.error.HTTPError as error:
        return error.code != HTTPStatus.NOT_FOUND
    except OSError:  # refused, reset, TLS not up yet
        return False

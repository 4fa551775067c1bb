"""What every suite shares: the two kinds of cluster its tests run on.

A test that asks for ``cluster`` runs twice: on the embedded cluster, in process and on virtual time, and (marked
``real``) on a real control plane in real time. Session fixtures start the real planes when first asked for.
"""

import asyncio
import gc
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import structlog
from hypothesis import HealthCheck, settings

from spinney.api.coordination import LEASE
from spinney.api.core import NAMESPACE, NODE, POD, SERVICE_ACCOUNT
from spinney.api.schema.crd import manifests
from spinney.api.struct import JSON
from spinney.kube.client import Client
from spinney.runtime import Runtime, VirtualTimeLoop
from spinney.server import ApiServer
from spinney.sim.embedded.transport import InProcessTransport
from spinney.testing.controlplane import ControlPlane, GoMissing
from tests import descriptors
from tests.examples import NEW
from tests.logs import log_plainly


def pytest_configure(config: pytest.Config) -> None:
    """Have every test checked for what it leaves open, and interrupts heard.

    A shell has what it starts in the background ignore interrupts, and so would the commands that tests interrupt.
    """
    config.pluginmanager.register(descriptors, "descriptors")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


# No example is judged by how long it took: machines differ. A change is judged by the same examples each time; others
# are searched for every night.
settings.register_profile("same", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.register_profile("new", settings.get_profile("same"), derandomize=False)
settings.load_profile("new" if NEW else "same")


log_plainly()
_LOGS = structlog.get_config()


@pytest.fixture(autouse=True)
def _logs_as_they_were() -> Iterator[None]:
    """Undo what a command did to the process's logging, in a test or in a fixture that a module shares."""
    yield
    structlog.configure(**_LOGS)


@pytest.fixture(autouse=True)
def _garbage_collector_as_it_was() -> Iterator[None]:
    """Undo what a process under test did to the collector: Hypothesis cannot see the referrers of frozen objects."""
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)


@dataclass(frozen=True)
class Cluster:
    """A cluster a test has for itself: a fresh embedded server, or a fresh namespace of a real one."""

    name: str  # "embedded" or "real"
    client: Client
    runtime: Runtime
    namespace: str
    kubeconfig: Path | None  # None: the embedded server has no socket
    server: ApiServer | None
    plane: ControlPlane | None

    @property
    def embedded(self) -> bool:
        """Say whether this is the embedded cluster, on virtual time."""
        return self.server is not None

    def connect(self, field_manager: str = "spinney") -> Client:
        """Return a further client of the same cluster, over the same connection."""
        return Client(self.client.transport, self.runtime, field_manager=field_manager)


# -- real control planes ----------------------------------------------------------------------------------------------


def real_plane(minor: str, crds: Sequence[JSON]) -> Iterator[ControlPlane]:
    """Run a control plane of a minor; a machine that has none and cannot build one skips the test."""
    plane = ControlPlane(minor, crds=crds)
    try:
        plane.start()
    except GoMissing as missing:
        pytest.skip(f"NO REAL CONTROL PLANE: {missing}")
    yield plane
    plane.stop()


@pytest.fixture(scope="session")
def controlplane() -> Iterator[ControlPlane]:
    """A control plane of Kubernetes 1.37."""
    yield from real_plane("1.37", manifests())


@pytest.fixture(scope="session")
def controlplane_136() -> Iterator[ControlPlane]:
    """A control plane of Kubernetes 1.36."""
    yield from real_plane("1.36", manifests())


@pytest.fixture(scope="session")
def controlplane_135() -> Iterator[ControlPlane]:
    """A control plane of Kubernetes 1.35."""
    yield from real_plane("1.35", manifests())


# -- the cluster of one test ------------------------------------------------------------------------------------------


@pytest.fixture(params=["embedded", pytest.param("real", marks=pytest.mark.real)])
def cluster_name(request: pytest.FixtureRequest) -> str:
    """Which of the two clusters this run of a test is on."""
    name: str = request.param
    return name


@pytest.fixture
async def cluster(cluster_name: str, request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    """The cluster of this test, nobody else's: see :class:`Cluster`."""
    if cluster_name == "embedded":
        async for embedded in embedded_cluster():
            yield embedded
    else:
        async for real in real_cluster(request.getfixturevalue("controlplane")):
            yield real


async def embedded_cluster() -> AsyncIterator[Cluster]:
    """Give a fresh embedded cluster on virtual time, with one namespace."""
    runtime = Runtime.virtual(seed=1)
    server = ApiServer(runtime)
    running, stopping = asyncio.Event(), asyncio.Event()

    async def serve() -> None:  # a fixture is left in another task than it was entered in; this one stays
        async with server.running():
            running.set()
            await stopping.wait()

    serving = asyncio.create_task(serve())
    await running.wait()
    client = Client(InProcessTransport(server), runtime)
    namespace = "test"
    await client.create(NAMESPACE, {"metadata": {"name": namespace}})
    yield Cluster("embedded", client, runtime, namespace, kubeconfig=None, server=server, plane=None)
    await client.transport.close()
    stopping.set()
    await serving


async def real_cluster(plane: ControlPlane) -> AsyncIterator[Cluster]:
    """Give a fresh namespace of a control plane, and leave the plane without nodes."""
    runtime = Runtime.system()
    client = plane.connect(runtime)
    try:
        created = await client.create(NAMESPACE, {"metadata": {"generateName": "test-"}})
        namespace: str = created["metadata"]["name"]
        await _service_account_of(client, namespace)
        yield Cluster("real", client, runtime, namespace, kubeconfig=plane.kubeconfig, server=None, plane=plane)
        await client.delete(NAMESPACE, namespace)  # first: from now on no controller makes another pod in it
        await client.delete_collection(POD, namespace, grace_period_seconds=0)
        await client.delete_collection(NODE)
        await client.delete_collection(LEASE, "kube-node-lease")
    finally:
        await client.transport.close()
        runtime.executor.close()


async def _service_account_of(client: Client, namespace: str) -> None:
    """Wait until the namespace has its default service account: before that no pod is admitted."""
    async for event in client.watch(SERVICE_ACCOUNT, namespace, field_selector="metadata.name=default"):
        if event.type == "ADDED":
            return


# -- virtual time for the embedded cluster ----------------------------------------------------------------------------

_virtual_time = pytest.StashKey[bool]()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Note on which kind of loop the coming test runs, before its loop is made."""
    callspec: Any = getattr(item, "callspec", None)
    parameters: Mapping[str, object] = callspec.params if callspec is not None else {}
    item.config.stash[_virtual_time] = parameters.get("cluster_name") == "embedded"


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Give tests on the embedded cluster a loop on virtual time, and all others an ordinary one."""

    def loop() -> asyncio.AbstractEventLoop:
        return VirtualTimeLoop() if config.stash.get(_virtual_time, False) else asyncio.new_event_loop()

    return {"loop": loop}

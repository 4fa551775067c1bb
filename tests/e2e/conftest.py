"""The cluster, the backend and the stage of every scenario."""

from collections.abc import AsyncIterator, Iterator

import pytest

from spinney.api.core import NAMESPACE
from spinney.kube.client import Client
from spinney.runtime import Runtime
from spinney.server import ApiServer
from spinney.sim.embedded.transport import InProcessTransport
from spinney.testing.controlplane import ControlPlane
from tests.conftest import Cluster, real_cluster, real_plane
from tests.e2e.backends import THOROUGH, Backend
from tests.e2e.harness import Stages
from tests.e2e.reviewing import Reviews

PLANES = {"real": "controlplane", "peer": "peered"}
"""The fixture of the control plane on which a cluster of some name is."""


@pytest.fixture(scope="session")
def peered() -> Iterator[ControlPlane]:
    """A control plane for the schedulers of others, whose CRDs are not ours."""
    yield from real_plane("1.37", crds=())


@pytest.fixture(params=["embedded"])
def cluster_name(request: pytest.FixtureRequest) -> str:
    """Scenarios run on the embedded cluster; those that are also run on a real one say so."""
    name: str = request.param
    return name


@pytest.fixture
def reviews() -> Reviews:
    """What carries admission reviews on the embedded cluster."""
    return Reviews()


@pytest.fixture
async def cluster(cluster_name: str, reviews: Reviews, request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    """The cluster of this scenario: an embedded one with admission, or a namespace of a real one."""
    if cluster_name in PLANES:
        async for real in real_cluster(request.getfixturevalue(PLANES[cluster_name])):
            yield real
        return
    runtime = Runtime.virtual(seed=1)
    server = ApiServer(runtime, webhooks=reviews)
    client = Client(InProcessTransport(server), runtime)
    await client.create(NAMESPACE, {"metadata": {"name": "test"}})
    yield Cluster("embedded", client, runtime, "test", kubeconfig=None, server=server, plane=None)
    await client.transport.close()


@pytest.fixture(params=THOROUGH, ids=str)
def backend(request: pytest.FixtureRequest) -> Backend:
    """The backends a scenario runs on unless it says otherwise."""
    row: Backend = request.param
    return row


@pytest.fixture
def a_stage(cluster: Cluster, backend: Backend, reviews: Reviews) -> Stages:
    """Opens the stage of the scenario."""
    return Stages(cluster, backend, reviews)

"""The two clusters on which other people's controllers run: a real control plane, and the embedded server on a port.

The real one is of this suite alone, as webhooks that are installed there concern every pod of a cluster.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from spinney.api.core import NAMESPACE
from spinney.kube.client import Client
from spinney.runtime import Runtime
from spinney.server import ApiServer, HttpServer
from spinney.sim.embedded.transport import InProcessTransport
from spinney.testing.controlplane import ControlPlane, GoMissing
from tests.conftest import Cluster, real_cluster
from tests.operators.installation import Installation


@dataclass(frozen=True)
class Ground:
    """A cluster and the operators that can be installed on it."""

    cluster: Cluster
    operators: Installation

    async def install(self, name: str) -> None:
        """Install an operator and run its controller; both stay for the tests that follow on this cluster."""
        await self.operators.install(name, self.cluster.client)

    @asynccontextmanager
    async def visited_by(self, name: str) -> AsyncIterator[None]:
        """Have an operator for the time of the block alone, as it concerns what all others make."""
        await self.install(name)
        try:
            yield
        finally:
            await self.operators.remove(name, self.cluster.client)


@pytest.fixture(scope="session")
def operated() -> Iterator[tuple[ControlPlane, Installation]]:
    """A control plane with operators on it."""
    plane = ControlPlane()
    try:
        plane.start()
    except GoMissing as missing:
        pytest.skip(f"NO REAL CONTROL PLANE: {missing}")
    operators = Installation(plane.kubeconfig, plane.directory)
    yield plane, operators
    operators.stop()
    plane.stop()


@pytest.fixture(params=["real", "embedded"])
async def ground(request: pytest.FixtureRequest) -> AsyncIterator[Ground]:
    """One of the two clusters, with a namespace of its own."""
    if request.param == "real":
        plane, operators = request.getfixturevalue("operated")
        async for cluster in real_cluster(plane):
            yield Ground(cluster, operators)
    else:
        with tempfile.TemporaryDirectory() as directory:
            async with _served(Path(directory)) as found:
                yield found


@asynccontextmanager
async def _served(directory: Path) -> AsyncIterator[Ground]:
    runtime = Runtime.system()
    server = ApiServer(runtime)
    serving, stopping = asyncio.Event(), asyncio.Event()
    kubeconfig = directory / "kubeconfig"

    async def serve() -> None:  # a fixture is left in another task than it was entered in; this one stays
        async with server.running(), HttpServer(server) as http:
            http.write_kubeconfig(kubeconfig)
            serving.set()
            await stopping.wait()

    task = asyncio.create_task(serve())
    await serving.wait()
    client = Client(InProcessTransport(server), runtime)
    await client.create(NAMESPACE, {"metadata": {"name": "test"}})
    operators = Installation(kubeconfig, directory)
    cluster = Cluster("embedded", client, runtime, "test", kubeconfig=kubeconfig, server=server, plane=None)
    try:
        yield Ground(cluster, operators)
    finally:
        await asyncio.to_thread(operators.stop)
        await client.transport.close()
        stopping.set()
        await task
        runtime.executor.close()

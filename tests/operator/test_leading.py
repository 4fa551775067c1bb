"""Two operators and one lease: who does not hold it writes nothing, and may still look around."""

import asyncio

from spinney.api.core import NAMESPACE, NODE, POD
from spinney.api.grove import POD_CLIQUE_SET
from spinney.kube.client import Client
from spinney.kube.crds import install_crds
from spinney.kube.errors import ConnectionFailed
from spinney.kube.lease import LeaderElection
from spinney.kube.manager import Manager
from spinney.kube.retrying import SAFE_METHODS
from spinney.kube.transport import Request, Response
from spinney.operator.operator import Operator, Settings
from spinney.runtime import Runtime
from spinney.server import ApiServer
from spinney.sim.embedded.transport import InProcessTransport
from spinney.testing.builders import a_clique, a_pod_clique_set
from tests.operator.harness import SPINNEY
from tests.virtual_time import on_virtual_time

LEASE = "grove-operator-leader-election"


class WatchedLine(InProcessTransport):
    """Notes when something was written, and can lose everything that concerns leases. Mutable."""

    def __init__(self, server: ApiServer) -> None:
        super().__init__(server)
        self.cut = False
        self.writes: list[float] = []

    async def request(self, request: Request) -> Response:
        if "/leases" in request.path:
            if self.cut:
                raise ConnectionFailed(f"{request}: lost")
        elif request.method not in SAFE_METHODS:
            self.writes.append(asyncio.get_running_loop().time())
        return await super().request(request)


def an_operator(server: ApiServer, runtime: Runtime, identity: str) -> tuple[Operator, WatchedLine]:
    """Return an operator that works only while it holds the lease."""
    line = WatchedLine(server)
    client = Client(line, runtime)
    election = LeaderElection(client, LEASE, "test", identity=identity, runtime=runtime)
    return Operator(client, Settings(profiles=SPINNEY), manager=Manager(client, runtime, election=election)), line


@on_virtual_time
async def test_who_loses_the_lease_stops_writing_before_another_begins() -> None:
    """Cut off from its lease, a leader falls silent before the standby writes, and the standby finishes the work."""
    runtime = Runtime.virtual(seed=11)
    server = ApiServer(runtime)
    client = Client(InProcessTransport(server), runtime)
    async with server.running():
        await client.create(NAMESPACE, {"metadata": {"name": "test"}})
        await client.create(NODE, {"metadata": {"name": "node-1"}})
        await install_crds(client)
        first, first_line = an_operator(server, runtime, "first")
        leading = asyncio.create_task(first.run())
        await first.manager.wait_until_ready()
        second, second_line = an_operator(server, runtime, "second")
        waiting = asyncio.create_task(second.run())
        await asyncio.sleep(5)
        first_line.cut = True
        for n in range(30):  # there is always something to do
            await client.apply(POD_CLIQUE_SET, a_pod_clique_set(f"model-{n}", [a_clique("worker", 2)]))
            await asyncio.sleep(1)
        await asyncio.sleep(30)

        assert first_line.writes
        assert second_line.writes
        assert max(first_line.writes) < min(second_line.writes)
        assert len((await client.list(POD, "test")).items) == 60
        second.stop()
        await asyncio.gather(leading, waiting, return_exceptions=True)


@on_virtual_time
async def test_a_standby_may_try_what_it_does_not_do() -> None:
    """A dry run is no write: a backend finds out on every replica what the API server would take."""
    runtime = Runtime.virtual(seed=12)
    server = ApiServer(runtime)
    async with server.running():
        client = Client(InProcessTransport(server), runtime)
        await client.create(NAMESPACE, {"metadata": {"name": "test"}})
        standby, _ = an_operator(server, runtime, "standby")
        space = {"metadata": {"name": "tried"}}
        await standby.manager.client.create(NAMESPACE, space, dry_run=True)
        assert "tried" not in {each["metadata"]["name"] for each in (await client.list(NAMESPACE)).items}

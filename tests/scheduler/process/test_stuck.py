"""A cycle that hangs in a plugin costs the lease: another replica goes on."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from structlog.testing import capture_logs

from spinney.api.core import NAMESPACE
from spinney.kube.client import Client
from spinney.kube.lease import LeaderElection, LeaseTimes
from spinney.kube.manager import Manager
from spinney.runtime import Runtime
from spinney.scheduler import NodeInfo, Plugin, PodGroupInfo, PodInfo, Session
from spinney.scheduler.config import PluginOption, SchedulerConfig
from spinney.scheduler.plugins import default_registry
from spinney.scheduler.process.process import CyclePace, SchedulerProcess
from spinney.server import ApiServer
from spinney.sim.embedded.transport import InProcessTransport
from tests.scheduler.process.world import NS, World, running

TIMES = LeaseTimes(lease_duration=4.0, renew_deadline=3.0, retry_period=0.1)
PATIENT, IMPATIENT = CyclePace(), CyclePace(slow=0.2, stuck=1.0)


class Hanging(Plugin):
    """Does not come back from the first pod it is asked about, until the test is over."""

    name = "hanging"
    end = threading.Event()

    def on_session_open(self, session: Session) -> None:
        """Register the predicate."""
        session.add_predicate_fn(self._hang)

    def _hang(self, task: PodInfo, job: PodGroupInfo, node: NodeInfo) -> None:
        self.end.wait()


@asynccontextmanager
async def a_replica(
    server: ApiServer, identity: str, *plugins: type[Plugin], pace: CyclePace = PATIENT
) -> AsyncIterator[LeaderElection]:
    """Run a scheduler that stands for election, with a worker thread of its own."""
    runtime = Runtime.system()
    client = Client(InProcessTransport(server), runtime)
    election = LeaderElection(client, "scheduler", NS, identity=identity, runtime=runtime, times=TIMES)
    registry = default_registry()
    for plugin in plugins:
        registry.register(plugin.name, plugin)
    options = (*SchedulerConfig().plugins, *(PluginOption(plugin.name) for plugin in plugins))
    manager = Manager(client, runtime, election=election)
    process = SchedulerProcess(client, SchedulerConfig(plugins=options), manager=manager, registry=registry, pace=pace)
    async with running(process):
        yield election
    runtime.executor.close()


async def leads(election: LeaderElection) -> None:
    """Wait until a replica has the lease."""
    while not election.leading:  # noqa: ASYNC110 - of another process, as it were
        await asyncio.sleep(0.05)


async def test_another_replica_goes_on_when_a_plugin_hangs() -> None:
    """The replica says what its cycle is busy with and gives its lease away; the pod gets its node from the next."""
    Hanging.end.clear()
    server = ApiServer(Runtime.system())
    world = World(server, Runtime.system())
    await world.client.create(NAMESPACE, {"metadata": {"name": NS}})
    with capture_logs() as logs:
        async with asyncio.timeout(60), server.running(), a_replica(server, "first", Hanging, pace=IMPATIENT) as first:
            await leads(first)
            await world.add_node("n1")
            await world.add_pod("p1")
            async with a_replica(server, "second") as second:
                while not (await world.places())["p1"]:  # noqa: ASYNC110 - of another process, as it were
                    await asyncio.sleep(0.05)
                assert [each.leading for each in (first, second)] == [False, True]
            Hanging.end.set()

    assert any("plugin hanging at predicate" in str(entry) for entry in logs)

"""A scheduler that is told to stop leaves the rest of its cycle undone: nobody waits for what it would decide."""

import asyncio
import threading
from typing import ClassVar

from spinney.api.core import NAMESPACE
from spinney.kube.client import Client
from spinney.runtime import Runtime
from spinney.scheduler import NodeInfo, Plugin, PodGroupInfo, PodInfo, Session
from spinney.scheduler.config import PluginOption, SchedulerConfig
from spinney.scheduler.plugins import default_registry
from spinney.scheduler.process.process import SchedulerProcess
from spinney.server import ApiServer
from spinney.sim.embedded.transport import InProcessTransport
from tests.scheduler.process.world import NS, World


class Slow(Plugin):
    """Is busy with the first pod it is asked about until the session is abandoned."""

    name = "slow"
    asked_about: ClassVar[set[str]] = set()
    began = threading.Event()

    def on_session_open(self, session: Session) -> None:
        """Register the predicate."""
        self._session = session
        session.add_predicate_fn(self._take_long)

    def _take_long(self, task: PodInfo, job: PodGroupInfo, node: NodeInfo) -> None:
        self.asked_about.add(task.name)
        self.began.set()
        pause = threading.Event()
        while not self._session.abandoned:
            pause.wait(0.01)


async def test_a_stop_is_heeded_before_the_next_job() -> None:
    """The cycle under way ends with the job it is looking at, and does not look at the others."""
    Slow.asked_about.clear()
    Slow.began.clear()
    runtime = Runtime.system()
    server = ApiServer(runtime)
    registry = default_registry()
    registry.register(Slow.name, Slow)
    config = SchedulerConfig(plugins=(*SchedulerConfig().plugins, PluginOption(Slow.name)))
    async with server.running():
        world = World(server, runtime)
        await world.client.create(NAMESPACE, {"metadata": {"name": NS}})
        await world.add_node("n1")
        for name in ("p1", "p2", "p3"):
            await world.add_pod(name)
        process = SchedulerProcess(Client(InProcessTransport(server), runtime), config, registry=registry)
        running = asyncio.create_task(process.run())
        await asyncio.to_thread(Slow.began.wait)
        process.stop()
        await running
    runtime.executor.close()

    assert len(Slow.asked_about) == 1

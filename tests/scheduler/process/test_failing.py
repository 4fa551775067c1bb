"""What fails in a process, an object, a gang or a whole cycle, does not end it."""

import asyncio
from collections.abc import Sequence

from spinney.api.core import Pod
from spinney.kube.cache import Change
from spinney.kube.client import Client
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.framework.results import Binding, CycleResult
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.process.commit import BookPositions
from spinney.scheduler.process.process import CYCLES, SchedulerProcess
from spinney.scheduler.process.shadow import Shadow
from tests.scheduler.process.world import World, given_a_world


class Hindered(Shadow):
    """Fails to conclude the first cycles."""

    failures = 3
    concluded = 0

    def conclude(self, result: CycleResult) -> None:
        if self.failures:
            self.failures -= 1
            raise RuntimeError("lost my configuration")
        self.concluded += 1
        super().conclude(result)


@given_a_world
async def test_a_cycle_that_fails_is_followed_by_another(world: World) -> None:
    """The process lives through cycles that fail as a whole, counts them, and decides again."""
    await world.add_node("n1")
    await world.add_pod("p1")
    client = Client(world.transport, world.runtime)
    inventory = Inventory()
    effects = Hindered(inventory, world.runtime.clock)
    process = SchedulerProcess(client, SchedulerConfig(), inventory=inventory, effects=effects)
    running = asyncio.create_task(process.run())
    await world.settle(30)
    assert effects.concluded
    failed = process.manager.metrics.registry.get_sample_value("spinney_failed_rounds_total", {"loop": CYCLES})
    assert failed == 3
    process.stop()
    await running


class Slippery(Shadow):
    """Cannot take in one pod."""

    def pod_changed(self, change: Change[Pod]) -> None:
        if change.key.name == "bad":
            raise RuntimeError("lost my configuration")

    def bind(self, binds: Sequence[Binding], *, decided_at: BookPositions) -> None:
        self.bound = {*getattr(self, "bound", set()), *(bind.pod.name for bind in binds)}
        super().bind(binds, decided_at=decided_at)


@given_a_world
async def test_a_pod_that_cannot_be_taken_in_is_alone_in_that(world: World) -> None:
    """Other pods are placed though one raised on its way in."""
    await world.add_node("n1")
    for name in ("bad", "good"):
        await world.add_pod(name)
    inventory = Inventory()
    effects = Slippery(inventory, world.runtime.clock)
    client = Client(world.transport, world.runtime)
    process = SchedulerProcess(client, SchedulerConfig(), inventory=inventory, effects=effects)
    running = asyncio.create_task(process.run())
    await world.settle(10)
    assert effects.bound == {"good"}
    process.stop()
    await running

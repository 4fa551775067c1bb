"""What fails in a process, an object, a gang or a whole cycle, does not end it."""

from collections.abc import Sequence

import pytest

from spinney.api.core import POD, Pod
from spinney.binding.binder import Binder
from spinney.binding.evicting import Disruption, Evictor, Victim
from spinney.binding.placement import GangOutcome, GangPlacement
from spinney.kube.cache import Change
from spinney.kube.client import Client
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.framework.results import Binding, CycleResult
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.process.commit import BookPositions
from spinney.scheduler.process.process import CYCLES, SchedulerProcess
from spinney.scheduler.process.shadow import Shadow
from tests.scheduler.process.test_evictions import a_full_node
from tests.scheduler.process.world import NS, World, given_a_world, running


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
    async with running(SchedulerProcess(client, SchedulerConfig(), inventory=inventory, effects=effects)) as process:
        await world.settle(30)
    assert effects.concluded
    failed = process.manager.metrics.registry.get_sample_value("spinney_failed_rounds_total", {"loop": CYCLES})
    assert failed == 3


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
    async with running(SchedulerProcess(client, SchedulerConfig(), inventory=inventory, effects=effects)):
        await world.settle(10)
    assert effects.bound == {"good"}


@given_a_world
async def test_a_gang_that_cannot_be_bound_by_error_is_alone_in_that(world: World) -> None:
    """Its pods say what went wrong, others are bound meanwhile, and after half a minute it is, too."""
    bind = Binder.bind
    failed: list[str] = []

    async def slips(binder: Binder, gang: GangPlacement) -> GangOutcome:
        if "odd" in gang.gang and not failed:
            failed.append(gang.gang)
            raise RuntimeError("lost my configuration")
        return await bind(binder, gang)

    await world.add_node("n1")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Binder, "bind", slips)
        await world.add_gang("odd", 2)
        await world.add_gang("sound", 2)
        async with world.scheduler():
            await world.settle(10)
            assert await world.places() == {"odd-0": "", "odd-1": "", "sound-0": "n1", "sound-1": "n1"}
            for pod in ("odd-0", "odd-1"):
                condition = (await world.client.get(POD, pod, NS, type=Pod)).condition("PodScheduled")
                assert condition is not None
                assert condition.reason == "SchedulerError"
                assert "failed while binding it: RuntimeError: lost my configuration; it is" in condition.message
            assert world.exported("spinney_scheduling_gang_errors_total", doing="binding") == 1
            await world.settle(40)
            assert set((await world.places()).values()) == {"n1"}


@given_a_world
async def test_an_eviction_that_fails_by_error_is_tried_again(world: World) -> None:
    """The victims stay where they are until then, and who needs their place gets it half a minute later."""
    evict = Evictor.evict
    failed: list[str] = []

    async def slips(evictor: Evictor, disruption: Disruption) -> tuple[Victim, ...]:
        if not failed:
            failed.append(disruption.name)
            raise RuntimeError("lost my configuration")
        return await evict(evictor, disruption)

    await a_full_node(world, victims=2)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Evictor, "evict", slips)
        async with world.scheduler():
            await world.settle(2)
            await world.add_pod("urgent", gpus=2, priorityClassName="urgent")
            await world.settle(10)
            assert await world.places() == {"v0": "n1", "v1": "n1", "urgent": ""}
            assert world.exported("spinney_scheduling_gang_errors_total", doing="evicting") == 1
            await world.settle(40)
            assert await world.places() == {"urgent": "n1"}

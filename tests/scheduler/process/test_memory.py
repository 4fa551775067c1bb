"""What a scheduler that runs for months holds: its books, and no cycles of the past."""

import gc

from spinney.api.core import POD
from spinney.api.workload_v1beta1 import POD_GROUP
from spinney.scheduler.framework.session import Session
from tests.scheduler.process.world import NS, World, given_a_world
from tests.weighing import held_by


@given_a_world
async def test_sessions_of_the_past_do_not_pile_up(world: World) -> None:
    """Where collections are rare, as in a process, the session of a cycle is gone when a later cycle has begun."""
    gc.collect()
    already = sum(type(each) is Session for each in gc.get_objects())
    thresholds = gc.get_threshold()
    gc.set_threshold(1_000_000, 1_000, 1_000)
    try:
        await world.add_node("n1", gpus=8)
        async with world.scheduler():
            for number in range(8):
                await world.add_pod(f"p{number}")
                await world.settle(3)
        assert sum(type(each) is Session for each in gc.get_objects()) - already <= 2
    finally:
        gc.set_threshold(*thresholds)


@given_a_world
async def test_gangs_that_came_and_went_leave_nothing(world: World) -> None:
    """Whether a gang was ever complete is forgotten with its pods, and so is what else is known of it."""
    await world.add_node("n1", gpus=8)
    async with world.scheduler() as process:

        async def day(number: int) -> int:
            for gang in (f"g{number}-{index}" for index in range(5)):
                await world.add_gang(gang, 2)
                await world.settle(3)
                assert set((await world.places()).values()) == {"n1"}
                for member in range(2):
                    await world.client.delete(POD, f"{gang}-{member}", NS)
                await world.settle(3)
                await world.client.delete(POD_GROUP, gang, NS)
            await world.settle(60)
            inventory = process.inventory
            return held_by((process._part_gangs, process._verdicts._refusals, inventory._evicted, inventory.requests))

        first = await day(0)
        assert await day(1) == await day(2) == first

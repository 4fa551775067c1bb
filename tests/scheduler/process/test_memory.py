"""What a scheduler that runs for months holds: its books, and no cycles of the past."""

import gc

from spinney.api.core import POD
from spinney.api.workload_v1beta1 import POD_GROUP
from spinney.kube.transport import Request, Response
from spinney.scheduler.framework.session import Session
from spinney.scheduler.process.effects import ClusterEffects
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


@given_a_world
async def test_pods_that_go_while_they_are_bound_leave_nothing(world: World) -> None:
    """That such a pod has gone is seen before its bind is refused for that: it comes to nothing that is kept."""
    await world.add_node("n1")
    answer = world.transport.request

    async def gone_meanwhile(request: Request) -> Response:
        if request.path.endswith("/binding"):
            await world.client.delete(POD, request.path.split("/")[-2], NS)
            await world.settle(1)
        return await answer(request)

    world.transport.request = gone_meanwhile  # type: ignore[method-assign]
    async with world.scheduler() as process:
        for number in range(3):
            await world.add_pod(f"p{number}")
        await world.settle(60)
        assert await world.places() == {}
        assert isinstance(process._effects, ClusterEffects)
        assert not process._effects._refusals

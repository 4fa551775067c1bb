"""What a scheduler that runs for months holds: its books, and no cycles of the past."""

import gc

from spinney.scheduler.framework.session import Session
from tests.scheduler.process.world import World, given_a_world


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

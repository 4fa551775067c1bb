"""No gang is left part-bound: it is completed first, or released in bounded time."""

import pytest

from spinney.api.core import EVENT, NODE, POD
from spinney.api.scheduling import PRIORITY_CLASS
from spinney.kube.errors import ConnectionFailed
from spinney.kube.transport import Response
from tests.scheduler.process.world import NS, Fault, World, given_a_world, status


def refusing_to_bind(*pods: str, code: int = 403) -> Fault:
    """Return a fault that refuses the binds of some pods."""
    paths = {f"/api/v1/namespaces/{NS}/pods/{pod}/binding" for pod in pods}
    reason = {403: "Forbidden", 404: "NotFound", 409: "Conflict"}[code]
    return lambda method, path: status(code, reason) if path in paths else None


@given_a_world
async def test_a_bind_without_an_answer_is_tried_again_on_its_node(world: World) -> None:
    """Binds that break off are repeated until they succeed, and meanwhile nobody else gets their room."""
    await world.add_node("n1", gpus=4)
    broken = 3

    def breaks(method: str, path: str) -> ConnectionFailed | None:
        nonlocal broken
        if not path.endswith("/binding") or not broken:
            return None
        broken -= 1
        return ConnectionFailed("the connection broke")

    world.transport.fault = breaks
    async with world.scheduler() as process:
        await world.add_gang("a", 4)
        await world.settle(0.5)
        await world.add_gang("b", 4)
        await world.settle(30)
        places = await world.places()
        assert {places[f"a-{number}"] for number in range(4)} == {"n1"}
        assert {places[f"b-{number}"] for number in range(4)} == {""}
        assert process.cycles <= 4


@given_a_world
async def test_what_a_part_bound_gang_misses_is_placed_first(world: World) -> None:
    """After a refused bind the bound members keep their room, and the rest goes before pods of higher priority."""
    await world.add_node("n1", gpus=4)
    world.transport.fault = refusing_to_bind("a-3")
    async with world.scheduler():
        await world.add_gang("a", 4)
        await world.settle(5)
        places = await world.places()
        assert [places[f"a-{number}"] for number in range(4)] == ["n1", "n1", "n1", ""]

        await world.client.create(PRIORITY_CLASS, {"metadata": {"name": "urgent"}, "value": 1000})
        for number in range(2):
            await world.add_pod(f"rival-{number}", priorityClassName="urgent")
        await world.settle(1)
        world.transport.fault = lambda method, path: None
        await world.settle(30)
        places = await world.places()
        assert places["a-3"] == "n1"
        assert places["rival-0"] == places["rival-1"] == ""


@given_a_world
async def test_a_gang_that_cannot_be_completed_is_released(world: World) -> None:
    """When the missing member finds no place within the grace period, the bound ones are evicted and say why."""
    await world.add_node("n1", gpus=4)
    world.transport.fault = refusing_to_bind("a-3")
    async with world.scheduler(part_gang_grace_seconds=60) as process:
        await world.add_gang("a", 4)
        await world.settle(50)
        assert list((await world.places()).values()).count("n1") == 3
        await world.settle(20)
        assert await world.places() == {"a-3": ""}
        assert process.cycles < 10, "a bind that is refused again and again is tried ever more rarely"
        await world.settle(5)
        reasons = [event["reason"] for event in (await world.client.list(EVENT, NS)).items]
        assert reasons.count("GangReleased") == 3


@pytest.mark.parametrize("code", [403, 404, 409])
@given_a_world
async def test_a_bind_that_is_refused_again_and_again_is_tried_ever_more_rarely(world: World, code: int) -> None:
    """Also one that says the pod is another by now: while the watch lags, that is all there is to go by."""
    await world.add_node("n1")
    world.transport.fault = refusing_to_bind("p", code=code)
    async with world.scheduler():
        await world.add_pod("p")
        await world.settle(60)
        tried = [path for _, path in world.transport.writes if path.endswith("/binding")]
        assert 2 <= len(tried) <= 10
        world.transport.fault = lambda method, path: None
        await world.settle(60)
        assert await world.places() == {"p": "n1"}


@given_a_world
async def test_a_release_is_counted_when_all_that_was_bound_has_gone(world: World) -> None:
    """While a disruption budget keeps the bound pods, no release is counted, however often one is tried."""
    await world.add_node("n1", gpus=4)
    refused = refusing_to_bind("a-3")

    def kept(method: str, path: str) -> Response | Exception | None:
        return status(429, "TooManyRequests") if path.endswith("/eviction") else refused(method, path)

    world.transport.fault = kept
    async with world.scheduler(part_gang_grace_seconds=60):
        await world.add_gang("a", 4)
        await world.settle(600)
        assert list((await world.places()).values()).count("n1") == 3
        assert world.exported("spinney_scheduling_released_gangs_total") == 0
        world.transport.fault = refused
        await world.settle(120)
        assert await world.places() == {"a-3": ""}
        assert world.exported("spinney_scheduling_released_gangs_total") == 1


@given_a_world
async def test_a_gang_whose_missing_members_are_deleted_is_released(world: World) -> None:
    """A part-bound gang is released also when nothing of it is left that could be placed."""
    await world.add_node("n1", gpus=4)
    world.transport.fault = refusing_to_bind("a-3")
    async with world.scheduler():
        await world.add_gang("a", 4)
        await world.settle(5)
        await world.client.delete(POD, "a-3", NS)
        await world.settle(90)
        assert await world.places() == {}


@given_a_world
async def test_a_gang_that_was_complete_and_lost_a_pod_is_left_alone(world: World) -> None:
    """A gang that had all it needs is not released when it loses a member that cannot be replaced."""
    await world.add_node("n1", gpus=4)
    async with world.scheduler():
        await world.add_gang("a", 4)
        await world.settle(5)
        await world.client.delete(POD, "a-3", NS)
        await world.client.patch(NODE, "n1", {"spec": {"unschedulable": True}})
        await world.add_pod("a-3", gang="a")
        await world.settle(300)
        places = await world.places()
        assert [places[f"a-{number}"] for number in range(4)] == ["n1", "n1", "n1", ""]


@given_a_world
async def test_a_restart_in_the_middle_of_a_gang_completes_it(world: World) -> None:
    """A new process on the same cluster finds the part-bound gang and places the rest."""
    await world.add_node("n1", gpus=4)
    world.transport.fault = refusing_to_bind("a-2", "a-3")
    async with world.scheduler():
        await world.add_gang("a", 4)
        await world.settle(5)
    world.transport.fault = lambda method, path: None
    async with world.scheduler():
        await world.settle(5)
        assert set((await world.places()).values()) == {"n1"}


@given_a_world
async def test_a_restart_does_not_forget_a_gang_that_cannot_be_completed(world: World) -> None:
    """A new process releases a gang that an earlier one left part-bound, but not one that had been complete."""
    await world.add_node("n1", gpus=4)
    await world.add_node("n2", gpus=4)
    world.transport.fault = refusing_to_bind("a-3")
    async with world.scheduler():
        await world.add_gang("a", 4)
        await world.add_gang("b", 4)
        await world.settle(5)
    await world.client.delete(POD, "b-3", NS)
    await world.settle(5)
    await world.add_pod("b-3", gang="b", gpus=8)
    async with world.scheduler():
        await world.settle(120)
        places = await world.places()
        assert [name for name, node in places.items() if name.startswith("a") and node] == []
        assert [name for name, node in places.items() if name.startswith("b") and node] == ["b-0", "b-1", "b-2"]

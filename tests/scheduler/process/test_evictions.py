"""Victims on a cluster: all that one job needs or none, within disruption budgets, and everybody is told."""

from spinney.api.core import EVENT, POD
from spinney.api.policy import POD_DISRUPTION_BUDGET
from spinney.api.scheduling import PRIORITY_CLASS
from spinney.api.struct import JSON
from tests.scheduler.process.world import NS, World, given_a_world, status


async def a_full_node(world: World, victims: int = 4) -> None:
    """Fill a node with pods that may be preempted, of two applications."""
    await world.add_node("n1", gpus=victims)
    await world.client.create(PRIORITY_CLASS, {"metadata": {"name": "urgent"}, "value": 90})
    await world.client.create(PRIORITY_CLASS, {"metadata": {"name": "idle"}, "value": 10})
    for number in range(victims):
        await world.add_pod(f"v{number}", priorityClassName="idle")
        await world.client.patch(POD, f"v{number}", {"metadata": {"labels": {"app": "v"}}}, NS)


async def a_budget(world: World, allowed: int) -> None:
    """Create a budget over the victims that allows so many disruptions now."""
    spec = {"maxUnavailable": allowed, "selector": {"matchLabels": {"app": "v"}}}
    await world.client.create(POD_DISRUPTION_BUDGET, {"metadata": {"name": "b", "namespace": NS}, "spec": spec})
    await allow(world, allowed)


async def allow(world: World, count: int) -> None:
    """Do what the disruption controller does."""
    found = {"disruptionsAllowed": count, "currentHealthy": 4, "desiredHealthy": 4 - count, "expectedPods": 4}
    patch = {"status": {**found, "observedGeneration": 1}}
    await world.client.patch(POD_DISRUPTION_BUDGET, "b", patch, NS, subresource="status")


async def events(world: World, reason: str) -> list[JSON]:
    found = (await world.client.list(EVENT, NS)).items
    return [event for event in found if event["reason"] == reason]


@given_a_world
async def test_victims_and_beneficiary_are_told(world: World) -> None:
    """The victim says for whom it went, and the beneficiary what its room has cost."""
    await a_full_node(world, victims=1)
    async with world.scheduler():
        await world.settle(2)
        await world.add_pod("urgent", priorityClassName="urgent")
        await world.settle(5)
        assert await world.places() == {"urgent": "n1"}
        said = {event["involvedObject"]["name"]: event["message"] for event in await events(world, "Evict")}
        assert "preempted by job" in said["v0"]
        assert said["urgent"] == f"Evicted 1 pod to make room: {NS}/v0"


@given_a_world
async def test_a_budget_is_counted_over_all_victims(world: World) -> None:
    """Two victims are needed and one may go: nobody is evicted, until the budget allows for both."""
    await a_full_node(world)
    await a_budget(world, 1)
    async with world.scheduler():
        await world.settle(2)
        await world.add_pod("urgent", gpus=2, priorityClassName="urgent")
        await world.settle(120)
        places = await world.places()
        assert places.pop("urgent") == ""
        assert set(places.values()) == {"n1"}

        await allow(world, 2)
        await world.settle(5)
        places = await world.places()
        assert places["urgent"] == "n1"
        assert len(places) == 3


@given_a_world
async def test_victims_that_no_budget_protects_are_found(world: World) -> None:
    """A budget that allows nothing turns the search to others."""
    await a_full_node(world)
    await a_budget(world, 0)
    await world.client.patch(POD, "v2", {"metadata": {"labels": {"app": "other"}}}, NS)
    async with world.scheduler():
        await world.settle(2)
        await world.add_pod("urgent", priorityClassName="urgent")
        await world.settle(5)
        places = await world.places()
        assert places["urgent"] == "n1"
        assert "v2" not in places
        assert len(places) == 4


@given_a_world
async def test_nobody_goes_when_one_victim_may_not(world: World) -> None:
    """A refusal that shows in the trial keeps all victims in place, and the beneficiary says so."""
    await a_full_node(world)
    async with world.scheduler():
        await world.settle(2)
        world.transport.fault = lambda method, path: (
            status(429, "TooManyRequests") if path.endswith("/pods/v1/eviction") else None
        )
        await world.add_pod("urgent", gpus=4, priorityClassName="urgent")
        await world.settle(10)
        places = await world.places()
        assert places.pop("urgent") == ""
        assert len(places) == 4
        assert await events(world, "EvictRefused")

        world.transport.fault = lambda method, path: None
        await world.settle(60)
        assert await world.places() == {"urgent": "n1"}

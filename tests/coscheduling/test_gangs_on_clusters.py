"""Gangs on whole clusters: what fits runs whole, what does not does not start, and nobody is stuck."""

import pytest

from tests.conftest import Cluster

from .world import World, a_node, a_pod, a_world, configured


async def test_a_gang_that_fits_is_bound_whole(world: World) -> None:
    """All members of a group that fits get their nodes, and an event says so for each."""
    await world.nodes(a_node("n1", cpu="2"), a_node("n2", cpu="2"))
    await world.gang("train", 4)

    await world.until(lambda: len(world.bound("train")) == 4)
    await world.until(lambda: world.status("train").scheduled == 4)
    await world.until(lambda: world.status("train").schedule_start_time is not None)
    assert len(await world.events("Scheduled", least=4)) == 4


async def test_a_gang_that_does_not_fit_holds_nothing(world: World) -> None:
    """No member of a group that does not fit is bound, its pods say why, and the room is left to others."""
    await world.nodes(a_node("n1", cpu="3"))
    await world.gang("big", 4)
    await world.until(lambda: any("Insufficient cpu" in world.message(name) for name in world.pods))
    await world.create(a_pod("single", cpu="3"))

    await world.until(lambda: bool(world.node_of("single")))
    assert world.bound("big") == []
    assert world.process is not None
    registry = world.process.manager.metrics.registry
    assert registry.get_sample_value("spinney_coscheduler_groups_rejected_total")
    assert registry.get_sample_value("spinney_coscheduler_pods", {"place": "waiting"}) == 0


@pytest.mark.parametrize("cluster_name", ["embedded"], indirect=True)
async def test_two_gangs_that_compete_are_served_in_turn(world: World) -> None:
    """Of two groups of which one fits, the first runs; the other runs when it has ended."""
    await world.nodes(a_node("n1", cpu="4"))
    await world.gang("first", 3)
    await world.settle(2)
    await world.gang("second", 3)
    await world.until(lambda: len(world.bound("first")) == 3)
    await world.settle(30)
    assert world.bound("second") == []

    await world.delete("first-0", "first-1", "first-2")
    await world.until(lambda: len(world.bound("second")) == 3)


@pytest.mark.parametrize("cluster_name", ["embedded"], indirect=True)
async def test_pods_that_come_one_by_one_wait_for_the_last(cluster: Cluster) -> None:
    """Members are tried only when enough of them exist, and those that wait say how many are missing."""
    async with a_world(cluster, configured()) as world, world.scheduling():
        await world.nodes(a_node("n1"))
        await world.group("slow", 3)
        await world.create(a_pod("slow-0", group="slow"), a_pod("slow-1", group="slow"))
        await world.until(lambda: "cannot find enough sibling pods" in world.message("slow-0"))
        assert world.bound() == []

        await world.create(a_pod("slow-2", group="slow"))
        await world.until(lambda: len(world.bound("slow")) == 3)

"""Broken groups of the coscheduler that have no room where they lie are moved whole, or left alone."""

import pytest

from spinney.api import workload_v1beta1
from spinney.api.core import CONFIG_MAP, NODE, POD
from spinney.api.policy import POD_DISRUPTION_BUDGET
from spinney.api.struct import JSON

from .test_native_gangs import RACK, a_native_group, a_native_pod
from .world import World, a_node

pytestmark = pytest.mark.parametrize("cluster_name", ["embedded"], indirect=True)


async def an_owner(world: World) -> JSON:
    """Return a reference to somebody who controls pods."""
    made: JSON = await world.client.create(CONFIG_MAP, {"metadata": {"name": "owner"}}, world.namespace)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "owner",
        "uid": made["metadata"]["uid"],
        "controller": True,
    }


async def add_member(world: World, name: str, owner: JSON | None) -> None:
    """Create a pod of the group."""
    pod = a_native_pod(name, "gang")
    pod["metadata"] |= {"labels": {"app": "gang"}, "ownerReferences": [owner] if owner is not None else []}
    await world.create(pod)


async def a_broken_gang(world: World, *, racks: int = 2, owner: JSON | None) -> None:
    """Have a gang of two run in rack 0, and lose a node there together with its pod, which is made anew."""
    await world.nodes(*(a_node(f"r0-{node}", cpu="1", labels={RACK: "r0"}) for node in range(2)))
    await world.client.create(workload_v1beta1.POD_GROUP, a_native_group("gang", 2, topology=RACK), world.namespace)
    for number in range(2):
        await add_member(world, f"gang-{number}", owner)
    await world.until(lambda: len(world.bound("gang")) == 2)
    for rack in range(1, racks):
        await world.nodes(*(a_node(f"r{rack}-{node}", cpu="1", labels={RACK: f"r{rack}"}) for node in range(2)))
    await world.client.delete(NODE, world.node_of("gang-1"))
    await world.delete("gang-1")
    await add_member(world, "gang-2", owner)


async def test_a_broken_group_is_moved_whole(world: World) -> None:
    """The rest of a group whose domain has no room is evicted, and all of it comes up in another domain."""
    owner = await an_owner(world)
    await a_broken_gang(world, owner=owner)
    await world.until(lambda: "gang-0" not in world.pods)
    await add_member(world, "gang-3", owner)
    await world.until(lambda: world.bound("gang") == ["gang-2", "gang-3"])
    assert {world.node_of("gang-2"), world.node_of("gang-3")} == {"r1-0", "r1-1"}
    assert any("is moved whole" in said for said in await world.events("Evict"))
    assert world.process is not None
    counted = world.process.manager.metrics.registry.get_sample_value
    assert counted("spinney_victims_total", {"queue": "", "reason": "relocation"}) == 1


async def test_a_group_with_no_room_anywhere_stays(world: World) -> None:
    """Nobody is evicted for a move that cannot be; with room in its domain the group is repaired there."""
    await a_broken_gang(world, racks=1, owner=await an_owner(world))
    await world.settle(60)
    assert world.bound("gang") == ["gang-0"]
    await world.nodes(a_node("r0-new", cpu="1", labels={RACK: "r0"}))
    await world.until(lambda: world.bound("gang") == ["gang-0", "gang-2"])


async def test_pods_that_nobody_makes_anew_stay(world: World) -> None:
    """Pods without a controller would be lost by a move."""
    await a_broken_gang(world, owner=None)
    await world.settle(60)
    assert world.bound("gang") == ["gang-0"]


async def test_a_disruption_budget_forbids_a_move(world: World) -> None:
    """A group whose budget allows no eviction stays, and its pod that waits says why."""
    spec = {"minAvailable": 2, "selector": {"matchLabels": {"app": "gang"}}}
    await world.client.create(POD_DISRUPTION_BUDGET, {"metadata": {"name": "all"}, "spec": spec}, world.namespace)
    await a_broken_gang(world, owner=await an_owner(world))
    await world.until(lambda: "disruption budget" in world.message("gang-2"))
    assert world.bound("gang") == ["gang-0"]
    found = await world.client.get(POD, "gang-0", world.namespace)
    assert "deletionTimestamp" not in found["metadata"]

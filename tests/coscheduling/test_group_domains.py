"""Native groups in one topology domain each: how it is chosen, left again, and made room in."""

import pytest

from spinney.api.core import Pod
from spinney.api.workload_v1beta1 import POD_GROUP
from tests.conftest import Cluster

from .test_native_gangs import RACK, a_native_group, a_native_pod
from .world import World, a_node, a_pod, a_world

pytestmark = pytest.mark.parametrize("cluster_name", ["embedded"], indirect=True)


async def racks(world: World, *cpus: int) -> None:
    """Create a node in each of so many racks."""
    for number, cpu in enumerate(cpus):
        await world.nodes(a_node(f"n{number}", cpu=str(cpu), labels={RACK: f"r{number}"}))


async def test_a_domain_that_turns_out_too_small_is_left(world: World) -> None:
    """Members of different sizes that a domain holds each but not together go to the next one, those that wait too."""
    await racks(world, 4, 6)
    await world.client.create(POD_GROUP, a_native_group("gang", 4, topology=RACK), world.namespace)
    await world.create(*(a_native_pod(f"gang-{number}", "gang", cpu="2") for number in range(2)))
    await world.create(*(a_native_pod(f"gang-{number}", "gang", cpu="1") for number in range(2, 4)))
    await world.until(lambda: len(world.bound("gang")) == 4, seconds=5)
    assert {world.node_of(name) for name in world.bound("gang")} == {"n1"}


async def test_a_group_without_a_quorum_has_one_domain_too(world: World) -> None:
    """Pods of a basic group go where most of them fit; what does not fit there waits, despite room elsewhere."""
    await racks(world, 2, 3)
    await world.create(*(a_native_pod(f"loose-{number}", "loose") for number in range(4)))
    await world.client.create(POD_GROUP, a_native_group("loose", None, topology=RACK), world.namespace)
    await world.until(lambda: len(world.bound("loose")) == 3)
    await world.settle(60)
    assert {world.node_of(name) for name in world.bound("loose")} == {"n1"}
    waiting = next(name for name in world.pods if not world.node_of(name))
    assert "node(s) didn't match the topology domain of the pod group" in world.message(waiting)


async def test_room_is_made_in_one_domain(world: World) -> None:
    """Preemption for a gang with a topology key takes victims of one domain only, the first where that is enough."""
    await world.priority("high", 1000)
    await racks(world, 2, 3, 3)
    for number, cpu in enumerate((2, 3, 3)):
        selector = {"kubernetes.io/hostname": f"n{number}"}
        await world.create(*(a_pod(f"low-{number}-{n}", nodeSelector=selector) for n in range(cpu)))
    await world.until(lambda: len(world.bound("low")) == 8)
    group = a_native_group("gang", 3, topology=RACK)
    group["spec"]["priorityClassName"] = "high"
    await world.client.create(POD_GROUP, group, world.namespace)
    await world.create(*(a_native_pod(f"gang-{n}", "gang", priorityClassName="high") for n in range(3)))
    await world.until(lambda: len(world.bound("gang")) == 3)
    assert {world.node_of(name) for name in world.bound("gang")} == {"n1"}
    left: list[Pod] = [pod for name, pod in world.pods.items() if name.startswith("low")]
    assert sorted(pod.spec.node_name for pod in left) == ["n0", "n0", "n2", "n2", "n2"]


async def test_members_that_are_bound_hold_their_group_in_its_domain(cluster: Cluster) -> None:
    """After a restart the rest of a group goes where its members are, and waits for room there."""
    async with a_world(cluster) as world:
        await racks(world, 2, 3)
        await world.client.create(POD_GROUP, a_native_group("gang", 1, topology=RACK), world.namespace)
        async with world.scheduling():
            await world.create(*(a_native_pod(f"gang-{number}", "gang") for number in range(2)))
            await world.until(lambda: len(world.bound("gang")) == 2)
        assert {world.node_of(name) for name in world.bound("gang")} == {"n0"}
        async with world.scheduling():
            await world.create(a_native_pod("gang-2", "gang"))
            await world.settle(30)
            assert world.node_of("gang-2") == ""
            await world.nodes(a_node("more", cpu="1", labels={RACK: "r0"}))
            await world.until(lambda: world.node_of("gang-2") == "more")

"""Composite pod groups of Kubernetes 1.37: groups that are placed together, with a minimum each."""

from typing import Any

import pytest

from spinney.api.meta import ObjectMeta
from spinney.api.podgang import (
    POD_GANG,
    GangTopologyConstraint,
    PodGang,
    PodGangSpec,
    PodGroup,
    TopologyConstraintGroupConfig,
    TopologyPackConstraint,
)
from spinney.api.struct import JSON, to_json
from spinney.api.workload_v1beta1 import COMPOSITE_POD_GROUP, POD_GROUP, WORKLOAD_V1ALPHA3
from spinney.backends import composites
from tests.conftest import Cluster

from .test_native_gangs import RACK, a_native_pod, until_condition
from .world import World, a_node, a_pod, a_world

embedded = pytest.mark.parametrize("cluster_name", ["embedded"], indirect=True)
BLOCK = "example.com/block"
HOST = "kubernetes.io/hostname"
REFERENCE = {"workloadName": "work", "templateName": "any"}


def a_part(name: str, minimum: int, parent: str, **spec: Any) -> JSON:
    """Return a PodGroup below a composite."""
    policy = {"gang": {"minCount": minimum}}
    body = {"parentCompositePodGroupName": parent, "workloadRef": REFERENCE, "schedulingPolicy": policy, **spec}
    return {"metadata": {"name": name}, "spec": body}


def a_composite(name: str, minimum: int, *, parent: str = "", **spec: Any) -> JSON:
    """Return a composite that needs so many of its groups."""
    body = {"workloadRef": REFERENCE, "schedulingPolicy": {"gang": {"minGroupCount": minimum}}, **spec}
    return {"metadata": {"name": name}, "spec": body | ({"parentCompositePodGroupName": parent} if parent else {})}


async def a_tree(world: World, *objects: JSON, **sizes: int) -> None:
    """Create composites and groups as they come, then the pods of each group."""
    for each in objects:
        kind = COMPOSITE_POD_GROUP if "minGroupCount" in str(each) else POD_GROUP
        await world.client.create(kind, each, world.namespace)
    for group, size in sizes.items():
        await world.create(*(a_native_pod(f"{group}-{number}", group) for number in range(size)))


@embedded
async def test_groups_of_a_composite_are_placed_together_or_not_at_all(world: World) -> None:
    """While there is room for one of the groups nobody is bound; with room for both all are, and each group says so."""
    await world.nodes(a_node("n1", cpu="3"))
    await a_tree(world, a_composite("job", 2), a_part("head", 1, "job"), a_part("work", 3, "job"), head=1, work=3)
    await until_condition(world, "head", "False", "Insufficient cpu")
    await until_condition(world, "work", "False", "Insufficient cpu")
    await world.settle(30)
    assert world.bound() == []
    await world.nodes(a_node("n2", cpu="1"))
    await world.until(lambda: len(world.bound()) == 4)
    await until_condition(world, "head", "True")
    await until_condition(world, "work", "True")


@embedded
async def test_some_of_the_groups_may_suffice(world: World) -> None:
    """A composite that needs one of two groups runs with the one that fits; the other follows when there is room."""
    await world.nodes(a_node("n1", cpu="2"))
    await a_tree(world, a_composite("job", 1), a_part("large", 3, "job"), a_part("small", 2, "job"), large=3, small=2)
    await world.settle(60)
    assert world.bound() in ([], ["small-0", "small-1"])
    await world.nodes(a_node("n2", cpu="3"))
    await world.until(lambda: len(world.bound()) == 5)


@embedded
async def test_no_group_takes_more_than_its_minimum_before_all_have_theirs(world: World) -> None:
    """A group with spare pods leaves the room that another one needs; the spare ones follow."""
    await world.nodes(a_node("n1", cpu="2"))
    await a_tree(world, a_composite("job", 2), a_part("a", 1, "job"), a_part("b", 1, "job"), a=3, b=1)
    await world.until(lambda: len(world.bound()) == 2)
    assert [name[0] for name in world.bound()] == ["a", "b"]
    await world.nodes(a_node("n2", cpu="2"))
    await world.until(lambda: len(world.bound()) == 4)


@embedded
async def test_objects_come_in_any_order(world: World) -> None:
    """Pods wait for their group, groups for the composites above them, whichever is there first."""
    await world.nodes(a_node("n1"))
    await a_tree(world, head=1, work=2)
    await world.until(lambda: "pod group test/head not found" in world.message("head-0"))
    await a_tree(world, a_part("head", 1, "inner"), a_part("work", 2, "job"))
    await a_tree(world, a_composite("inner", 1, parent="job"))
    await world.until(lambda: "pod group test/job not found" in world.message("work-0"))
    assert world.bound() == []
    await a_tree(world, a_composite("job", 2))
    await world.until(lambda: len(world.bound()) == 3)


@embedded
async def test_a_group_that_is_deleted_is_missed(world: World) -> None:
    """When one of the groups a composite needs is deleted, the others wait for it, and run when it is back."""
    await a_tree(world, a_composite("job", 2), a_part("a", 1, "job"), a_part("b", 1, "job"), a=1, b=1)
    await world.until(lambda: bool(world.message("a-0")))
    await world.client.patch(POD_GROUP, "b", {"metadata": {"finalizers": None}}, world.namespace)
    await world.client.delete(POD_GROUP, "b", world.namespace)
    await world.nodes(a_node("n1"))
    await world.settle(30)
    assert world.bound() == []
    await a_tree(world, a_part("b", 1, "job"))
    await world.until(lambda: len(world.bound()) == 2)


@embedded
async def test_a_topology_key_of_the_root_holds_for_all(world: World) -> None:
    """All groups of a composite with a topology key lie in one domain."""
    await world.nodes(*(a_node(f"n{n}", cpu="2", labels={RACK: f"r{n}"}) for n in range(2)))
    await world.nodes(*(a_node(f"m{n}", cpu="1", labels={RACK: "r2"}) for n in range(3)))
    key: JSON = {"schedulingConstraints": {"topology": [{"key": RACK}]}}
    await a_tree(world, a_composite("job", 2, **key), a_part("a", 1, "job"), a_part("b", 2, "job"), a=1, b=2)
    await world.until(lambda: len(world.bound()) == 3)
    assert {world.node_of(name)[0] for name in world.bound()} == {"m"}


@embedded
async def test_groups_lie_in_domains_of_the_domain_of_the_whole(world: World) -> None:
    """A job in one block, each of its groups in one rack: a block whose racks are cut badly is tried and left."""
    for block, rack, cpu in (("a", "r1", 1), ("a", "r2", 3), ("b", "r3", 2), ("b", "r4", 2)):
        await world.nodes(a_node(f"{block}-{rack}", cpu=str(cpu), labels={BLOCK: block, RACK: rack}))
    in_block: JSON = {"schedulingConstraints": {"topology": [{"key": BLOCK}]}}
    in_rack: JSON = {"schedulingConstraints": {"topology": [{"key": RACK}]}}
    parts = a_part("left", 2, "job", **in_rack), a_part("right", 2, "job", **in_rack)
    await a_tree(world, a_composite("job", 2, **in_block), *parts, left=2, right=2)
    await world.until(lambda: len(world.bound()) == 4)
    assert {world.node_of(name)[0] for name in world.bound()} == {"b"}
    for group in ("left", "right"):
        assert len({world.node_of(name) for name in world.bound(group)}) == 1


@embedded
async def test_a_composite_whose_groups_fit_no_domain_waits(world: World) -> None:
    """If no block has racks for all groups nobody is bound, and it is said how many blocks there are."""
    for block, rack, cpu in (("a", "r1", 1), ("a", "r2", 3), ("b", "r3", 1), ("b", "r4", 3)):
        await world.nodes(a_node(f"{block}-{rack}", cpu=str(cpu), labels={BLOCK: block, RACK: rack}))
    in_block: JSON = {"schedulingConstraints": {"topology": [{"key": BLOCK}]}}
    in_rack: JSON = {"schedulingConstraints": {"topology": [{"key": RACK}]}}
    parts = a_part("left", 2, "job", **in_rack), a_part("right", 2, "job", **in_rack)
    await a_tree(world, a_composite("job", 2, **in_block), *parts, left=2, right=2)
    await world.until(lambda: any("0/2 placements are available" in world.message(name) for name in world.pods))
    await world.settle(60)
    assert world.bound() == []
    await world.nodes(a_node("b-r3-more", cpu="1", labels={BLOCK: "b", RACK: "r3"}))
    await world.until(lambda: len(world.bound()) == 4)


@embedded
@pytest.mark.parametrize(("size", "taken"), [(3, 0), (2, 1)])
async def test_victims_are_taken_for_all_groups_or_for_none(world: World, size: int, taken: int) -> None:
    """Preemption makes room for what all groups need together, and for no composite that would still not fit."""
    await world.priority("high", 1000)
    await world.nodes(a_node("n1", cpu="3"))
    await world.create(a_pod("low"))
    await world.until(lambda: bool(world.node_of("low")))
    high = {"priorityClassName": "high"}
    await a_tree(world, a_composite("job", 2, **high), a_part("a", 1, "job", **high), a_part("b", size, "job", **high))
    await world.create(a_native_pod("a-0", "a", **high))
    await world.create(*(a_native_pod(f"b-{number}", "b", **high) for number in range(size)))
    if taken:
        await world.until(lambda: len(world.bound("a")) + len(world.bound("b")) == 3)
    else:
        await world.settle(60)
    assert ("low" in world.pods) is not bool(taken)


async def test_a_tree_on_a_cluster(world: World) -> None:
    """On a real API server as on the embedded one: three levels, bound whole once there is room."""
    leaf: JSON = {"name": "any", "schedulingPolicy": {"gang": {"minCount": 1}}}
    root = {"name": "root", "schedulingPolicy": {"gang": {"minGroupCount": 1}}, "podGroupTemplates": [leaf]}
    workload = {"metadata": {"name": "work"}, "spec": {"compositePodGroupTemplates": [root]}}
    await world.client.create(WORKLOAD_V1ALPHA3, workload, world.namespace)
    await world.nodes(a_node("n1", cpu="2"))
    await a_tree(
        world,
        a_composite("job", 2),
        a_composite("inner", 2, parent="job"),
        a_part("a", 1, "job"),
        a_part("b", 1, "inner"),
        a_part("c", 1, "inner"),
        a=1,
        b=1,
        c=1,
    )
    await until_condition(world, "c", "False", "Insufficient cpu")
    assert world.bound() == []
    await world.nodes(a_node("n2", cpu="1"))
    await world.until(lambda: len(world.bound()) == 3)
    await until_condition(world, "a", "True")


@embedded
async def test_the_tree_that_the_kube_backend_writes(cluster: Cluster) -> None:
    """A gang in one block, its replicas in one rack each, the prefill pods of each on one host: as a tree of groups."""
    gang = PodGang(
        metadata=ObjectMeta(name="model", namespace="test"),
        spec=PodGangSpec(
            topology_constraint=packed(BLOCK),
            pod_groups=(
                PodGroup(name="router", min_replicas=1),
                *(PodGroup(name=f"{r}-prefill", min_replicas=2, topology_constraint=packed(HOST)) for r in ("a", "b")),
                *(PodGroup(name=f"{replica}-decode", min_replicas=1) for replica in ("a", "b")),
            ),
            topology_constraint_group_configs=tuple(
                TopologyConstraintGroupConfig(
                    name=replica,
                    pod_group_names=(f"{replica}-prefill", f"{replica}-decode"),
                    topology_constraint=packed(RACK),
                )
                for replica in ("a", "b")
            ),
        ),
    )
    async with a_world(cluster) as world, world.scheduling():
        for block in ("x", "y"):
            for rack in ("1", "2"):
                labels = {BLOCK: block, RACK: f"{block}{rack}"}
                sizes = ("2", "2") if block == "y" else ("1", "3" if rack == "1" else "1")
                await world.nodes(
                    *(a_node(f"{block}{rack}-{n}", cpu=cpu, labels=labels) for n, cpu in enumerate(sizes))
                )
        gang = await world.client.create(POD_GANG, to_json(gang), world.namespace, type=PodGang)
        for resource, each in composites.tree(gang, "", topology=True):
            await world.client.create(resource, to_json(each), world.namespace)
        for group in gang.spec.pod_groups:
            native = composites.name_in_tree(group.name, gang)
            await world.create(*(a_native_pod(f"{group.name}-{n}", native) for n in range(group.min_replicas)))
        await world.until(lambda: len(world.bound()) == 7)
        assert {world.node_of(name)[0] for name in world.bound()} == {"y"}
        for replica in ("a", "b"):
            assert len({world.node_of(name)[:2] for name in world.bound(f"{replica}-")}) == 1
            assert len({world.node_of(name) for name in world.bound(f"{replica}-prefill")}) == 1


def packed(key: str) -> GangTopologyConstraint:
    """Return the constraint to lie in one domain of a key."""
    return GangTopologyConstraint(pack_constraint=TopologyPackConstraint(required=key))

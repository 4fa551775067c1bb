"""Two schedulers of one process read the cluster once, and understand its gangs alike."""

from typing import Any

import pytest

from spinney.api.core import Pod, PodSchedulingGroup, PodWorkloadReference
from spinney.api.meta import ObjectMeta
from spinney.api.workload_v1alpha1 import GangPolicy, PodGroupPolicy, Workload, WorkloadSpec
from spinney.api.workload_v1alpha1 import PodGroup as WorkloadGroup
from spinney.api.workload_v1alpha2 import SchedulingPolicy
from spinney.api.workload_v1beta1 import (
    CompositeGangPolicy,
    CompositePodGroup,
    CompositePodGroupSpec,
    CompositeSchedulingPolicy,
    PodGroup,
    PodGroupSpec,
    WorkloadReference,
)
from spinney.cluster.pods import PodKey
from spinney.coscheduling.groups.book import Groups
from spinney.gangs.intake import ClusterIntake
from spinney.gangs.tree import Gang, GangKey
from spinney.kube.keys import Key
from spinney.scheduler.intake.inventory import Inventory
from tests.scheduler.building import NAMESPACE, a_node, a_pod, a_scheduler, placements

COMPOSITE = GangKey("composite", NAMESPACE, "both")
OF_WORKLOAD = GangKey("workload", NAMESPACE, "work/workers/0")


def a_workload(minimum: int) -> Workload:
    group = WorkloadGroup(name="workers", policy=PodGroupPolicy(gang=GangPolicy(min_count=minimum)))
    return Workload(metadata=ObjectMeta(name="work", namespace=NAMESPACE), spec=WorkloadSpec(pod_groups=(group,)))


def of_workload(name: str) -> Pod:
    reference = PodWorkloadReference(name="work", pod_group="workers", pod_group_replica_key="0")
    return a_pod(name, workload_ref=reference)


def a_composite_of_two() -> list[Any]:
    """Return a composite that needs both of its PodGroups, of two pods each."""
    composite = CompositePodGroup(
        metadata=ObjectMeta(name="both", namespace=NAMESPACE),
        spec=CompositePodGroupSpec(
            workload_ref=WorkloadReference(workload_name="w", template_name="t"),
            scheduling_policy=CompositeSchedulingPolicy(gang=CompositeGangPolicy(min_group_count=2)),
        ),
    )
    found: list[Any] = [composite]
    for name in ("left", "right"):
        policy = SchedulingPolicy(gang=GangPolicy(min_count=2))
        spec = PodGroupSpec(scheduling_policy=policy, parent_composite_pod_group_name="both")
        found.append(PodGroup(metadata=ObjectMeta(name=name, namespace=NAMESPACE), spec=spec))
        named = PodSchedulingGroup(pod_group_name=name)
        found += [a_pod(f"{name}-{number}", gpus=1, scheduling_group=named) for number in range(2)]
    return found


@pytest.mark.parametrize("order", ["composite first", "pods first"])
def test_the_session_scheduler_places_a_composite_whole(order: str) -> None:
    """Pods of all PodGroups of a composite are placed together, or wait together, whatever was seen first."""
    objects = a_composite_of_two()
    for gpus, placed in ((3, 0), (4, 4)):
        inventory = Inventory()
        inventory.apply(a_node("n1", gpus=gpus))
        for each in objects if order == "composite first" else reversed(objects):
            inventory.apply(each)
        assert len(placements(a_scheduler(inventory))) == placed


def test_a_group_that_leaves_its_composite_is_a_gang_of_its_own() -> None:
    """When the parent of a PodGroup is taken away its pods count for itself alone."""
    inventory = Inventory()
    for each in (a_node("n1", gpus=2), *a_composite_of_two()):
        inventory.apply(each)
    assert placements(a_scheduler(inventory)) == {}
    spec = PodGroupSpec(scheduling_policy=SchedulingPolicy(gang=GangPolicy(min_count=2)))
    inventory.apply(PodGroup(metadata=ObjectMeta(name="left", namespace=NAMESPACE), spec=spec))
    assert set(placements(a_scheduler(inventory))) == {"left-0", "left-1"}


def a_composite(name: str, parent: str | None = None) -> CompositePodGroup:
    """Return a composite that needs one of its groups."""
    spec = CompositePodGroupSpec(
        parent_composite_pod_group_name=parent,
        workload_ref=WorkloadReference(workload_name="w", template_name="t"),
        scheduling_policy=CompositeSchedulingPolicy(gang=CompositeGangPolicy(min_group_count=1)),
    )
    return CompositePodGroup(metadata=ObjectMeta(name=name, namespace=NAMESPACE), spec=spec)


def a_part_of(parent: str) -> PodGroup:
    """Return a group of one pod in a composite."""
    policy = SchedulingPolicy(gang=GangPolicy(min_count=1))
    spec = PodGroupSpec(scheduling_policy=policy, parent_composite_pod_group_name=parent)
    return PodGroup(metadata=ObjectMeta(name="part", namespace=NAMESPACE), spec=spec)


def test_composites_in_a_chain_without_end_keep_only_their_own_pods_waiting() -> None:
    """The API server lets anybody make them; the pods are told, by both schedulers alike, and others are placed."""
    shared = ClusterIntake()
    inventory, groups = Inventory(shared=shared), Groups(shared.gangs)
    shared.gangs.subscribe(groups)
    shared.cluster.subscribe(groups.pod_changed)
    inventory.apply(a_node("n1", gpus=2))
    for depth in range(1500):
        inventory.apply(a_composite(f"c{depth}", f"c{depth - 1}" if depth else None))
    inventory.apply(a_part_of("c1499"))
    inventory.apply(a_pod("deep", gpus=1, scheduling_group=PodSchedulingGroup(pod_group_name="part")))
    inventory.apply(a_pod("sound", gpus=1))
    result = a_scheduler(inventory).run_cycle()
    assert [bind.pod.name for bind in result.binds] == ["sound"]
    assert "nested deeper than 64 levels" in result.unschedulable[0].message
    group = groups.get(GangKey("composite", NAMESPACE, "c0"))
    assert group is not None
    assert not group.complete


def test_a_group_of_a_composite_that_says_the_same_changes_no_gang() -> None:
    """Each group's status is written while a gang is placed: it is no reason to look at all of them again."""
    inventory, told = Inventory(), Told()
    for each in (a_composite("c"), a_part_of("c")):
        inventory.apply(each)
    inventory.shared.gangs.subscribe(told)
    told.gangs.clear()
    inventory.apply(a_part_of("c"))
    assert told.gangs == []
    inventory.apply(a_composite("c"))
    assert told.gangs == [GangKey("composite", NAMESPACE, "c")]


class Told:
    """A book that notes which gangs it is told about."""

    def __init__(self) -> None:
        self.gangs: list[GangKey] = []

    def put_gang(self, gang: Gang) -> None:
        """Note a gang."""
        self.gangs.append(gang.key)

    def remove_gang(self, key: GangKey) -> None:
        """Note a gang that is gone."""
        self.gangs.append(key)

    def attach(self, part: GangKey, before: GangKey, home: GangKey) -> None:
        """Nothing belongs to it."""

    def derive_again(self, workload: Key | None) -> None:
        """Nothing is derived."""


def test_both_books_know_the_gangs_of_a_workload_and_that_it_is_gone() -> None:
    """A Workload that was there before its pods is known to both schedulers, and so is its deletion."""
    shared = ClusterIntake()
    inventory, groups = Inventory(shared=shared), Groups(shared.gangs)
    shared.gangs.subscribe(groups)
    shared.cluster.subscribe(groups.pod_changed)
    shared.apply(a_workload(2))
    for name in ("p0", "p1"):
        shared.apply(of_workload(name))
        shared.apply(of_workload(name))
    assert is_complete(groups)
    assert inventory.gangs.members(OF_WORKLOAD) is not None
    shared.delete(a_workload(2))
    assert not is_complete(groups)
    assert inventory.gangs.members(OF_WORKLOAD) is None


def is_complete(groups: Groups) -> bool:
    """Tell whether the coscheduler would try the pods of the Workload."""
    group = groups.get(OF_WORKLOAD)
    return group is not None and group.complete


def test_a_group_that_joins_a_composite_while_members_wait_holds_no_node_there() -> None:
    """Members that give their nodes back because their group changes count in the composite as pods without one."""
    shared = ClusterIntake()
    groups = Groups(shared.gangs)
    shared.gangs.subscribe(groups)
    shared.cluster.subscribe(groups.pod_changed)
    composite, left, *rest = a_composite_of_two()
    alone = PodGroup(metadata=left.metadata, spec=PodGroupSpec(scheduling_policy=left.spec.scheduling_policy))
    for each in (a_node("n1", gpus=8), composite, alone, *rest):
        shared.apply(each)
    member = PodKey(NAMESPACE, "left-0")
    shared.cluster.assume(member, "n1")
    own = groups.of(member)
    assert own is not None
    own.waiting[Key(*member)] = None
    groups.broken = lambda group: shared.cluster.forget(member)

    shared.apply(left)

    joined = groups.get(COMPOSITE)
    assert joined is groups.of(member)
    assert joined is not None
    assert (len(joined.pending()), joined.assigned, joined.complete) == (4, 0, True)


def test_a_book_that_comes_late_learns_what_there_is() -> None:
    """Gangs and composites that were defined before a scheduler began to listen are known to it."""
    shared = ClusterIntake()
    for each in a_composite_of_two():
        shared.apply(each)
    members = Inventory(("default-scheduler", "spinney-scheduler"), shared=shared).gangs.members(COMPOSITE)
    assert members is not None
    assert {name for name, _ in members.pods.values()} == {"left", "right"}

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
from spinney.gangs.tree import GangKey
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

"""Gangs of a Workload follow it: its minimum counts as it is now, and without it there is no gang."""

from spinney.api.core import PodWorkloadReference
from spinney.api.meta import ObjectMeta
from spinney.api.workload_v1alpha1 import GangPolicy, PodGroup, PodGroupPolicy, Workload, WorkloadSpec
from spinney.gangs.tree import GangKey
from spinney.scheduler.intake.inventory import Inventory
from tests.scheduler.building import NAMESPACE, a_pod
from tests.weighing import held_by

KEY = GangKey("workload", NAMESPACE, "work/workers/0")


def a_workload(minimum: int, *, uid: str = "first") -> Workload:
    policy = PodGroupPolicy(gang=GangPolicy(min_count=minimum))
    return Workload(
        metadata=ObjectMeta(name="work", namespace=NAMESPACE, uid=uid),
        spec=WorkloadSpec(pod_groups=(PodGroup(name="workers", policy=policy),)),
    )


def an_inventory_of_two_pods() -> Inventory:
    inventory = Inventory()
    reference = PodWorkloadReference(name="work", pod_group="workers", pod_group_replica_key="0")
    for number in range(2):
        inventory.apply(a_pod(f"p{number}", workload_ref=reference))
    return inventory


def minimum(inventory: Inventory) -> int | None:
    members = inventory.snapshot().gangs.gangs.get(KEY)
    return members.gang.pod_sets["default"].min_member if members is not None else None


def test_a_recreated_workload_brings_its_own_minimum() -> None:
    """A Workload that is changed, or deleted and made anew, is what counts from then on."""
    inventory = an_inventory_of_two_pods()
    inventory.apply(a_workload(2))
    assert minimum(inventory) == 2
    inventory.apply(a_workload(3))
    assert minimum(inventory) == 3
    inventory.delete(a_workload(3))
    inventory.apply(a_workload(1, uid="second"))
    assert minimum(inventory) == 1


def test_without_the_workload_there_is_no_gang() -> None:
    """Pods of a deleted Workload wait for it, and say so."""
    inventory = an_inventory_of_two_pods()
    inventory.apply(a_workload(2))
    inventory.delete(a_workload(2))
    gangs = inventory.snapshot().gangs
    assert minimum(inventory) is None
    assert not gangs.pending
    assert {pod.name for pod in gangs.orphans} == {"p0", "p1"}


def test_workloads_of_the_past_are_forgotten() -> None:
    """Workloads and their pods that came and went leave nothing behind."""
    inventory = an_inventory_of_two_pods()
    inventory.snapshot()
    before = held_by(inventory.gangs), held_by(inventory.shared.gangs)
    for number in range(50):
        reference = PodWorkloadReference(name="work", pod_group="workers", pod_group_replica_key=f"x{number}")
        pod = a_pod(f"x{number}", workload_ref=reference)
        inventory.apply(a_workload(1))
        inventory.apply(pod)
        inventory.delete(a_workload(1))
        inventory.delete(pod)
    inventory.snapshot()
    assert (held_by(inventory.gangs), held_by(inventory.shared.gangs)) == before

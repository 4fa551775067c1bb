"""Volumes: pods wait for their claims, each for its own."""

from collections.abc import Mapping

import pytest

from spinney.api.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from spinney.api.core import EphemeralVolume, PersistentVolumeClaimVolume, Volume
from spinney.api.meta import Metadata, OwnerReference
from spinney.api.storage import (
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    StorageClass,
    VolumeNodeAffinity,
)
from spinney.cluster.filters.volume_binding import volumes_on_node
from spinney.gangs.tree import GroupSet, PodSet
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.placement.placing import place_job
from tests.scheduler.building import NAMESPACE, a_gang, a_node, a_pod, a_scheduler, an_inventory, placements, put_gang

SCRATCH = (Volume(name="scratch", ephemeral=EphemeralVolume()),)


def a_cluster(*pods: str) -> Inventory:
    """Return a node, a class whose volumes wait for their first consumer, and claims of it made for pods."""
    inventory = an_inventory(a_node("n0"))
    inventory.apply(
        StorageClass(
            metadata=Metadata(name="late"), provisioner="example.com", volume_binding_mode=WAIT_FOR_FIRST_CONSUMER
        )
    )
    for pod in pods:
        put_claim(inventory, pod)
    return inventory


def put_claim(inventory: Inventory, pod: str, *, uid: str = "") -> None:
    """Have the ephemeral claim of a pod made."""
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod, uid=uid or pod, controller=True)
    metadata = Metadata(name=f"{pod}-scratch", namespace=NAMESPACE, uid=f"{pod}-scratch", owner_references=(owner,))
    inventory.apply(PersistentVolumeClaim(metadata=metadata, spec=PersistentVolumeClaimSpec(storage_class_name="late")))


def put_users(inventory: Inventory, name: str, count: int) -> None:
    """Put a gang whose pods each have an ephemeral volume."""
    pods = [a_pod(f"{name}-{number}", gang=name, volumes=SCRATCH) for number in range(count)]
    put_gang(inventory, a_gang(name, minimum=count), pods)


def test_a_gang_waits_until_the_ephemeral_claim_of_every_pod_is_made() -> None:
    """The claim of one pod says nothing about that of another: nobody is bound before all claims are there."""
    inventory = a_cluster("g-0")
    put_users(inventory, "g", 2)
    result = a_scheduler(inventory).run_cycle()
    assert not result.binds
    (unschedulable,) = result.unschedulable
    assert 'to create the persistentvolumeclaim "g-1-scratch"' in unschedulable.errors[0].message

    put_claim(inventory, "g-1")
    assert placements(a_scheduler(inventory)) == {"g-0": "n0", "g-1": "n0"}


def test_a_job_whose_ephemeral_claim_is_missing_holds_up_no_other() -> None:
    """A job of the same form whose claim was made is placed."""
    inventory = a_cluster("b-0")
    put_users(inventory, "a", 1)
    put_users(inventory, "b", 1)

    assert placements(a_scheduler(inventory)) == {"b-0": "n0"}


def test_no_node_takes_a_pod_whose_claim_is_missing() -> None:
    """The rule about nodes says so as well, whoever asks it."""
    inventory = a_cluster()
    put_users(inventory, "g", 1)
    session = a_scheduler(inventory).open_session()
    (job,) = session.pending_jobs()
    (task,) = job.tasks

    assert not session.ask.node_rules.candidates(task, session.nodes.all).rows.size
    session.close()


def test_a_pod_is_not_bound_to_the_ephemeral_claim_of_an_earlier_one() -> None:
    """The claim of a pod that is gone goes soon, so one of the same name waits for its own."""
    inventory = a_cluster()
    put_claim(inventory, "g-0", uid="earlier")
    put_users(inventory, "g", 1)
    result = a_scheduler(inventory).run_cycle()

    assert not result.binds
    (unschedulable,) = result.unschedulable
    assert "was not created for pod team/g-0 (pod is not owner)" in unschedulable.errors[0].message


HOST = "kubernetes.io/hostname"
SHARED = (Volume(name="data", persistent_volume_claim=PersistentVolumeClaimVolume(claim_name="data")),)


def a_volume(name: str, *nodes: str, size: str = "1Gi") -> PersistentVolume:
    """Return a free volume that some nodes reach."""
    term = NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key=HOST, operator="In", values=nodes),))
    return PersistentVolume(
        metadata=Metadata(name=name),
        spec=PersistentVolumeSpec(
            storage_class_name="local",
            capacity={"storage": size},
            node_affinity=VolumeNodeAffinity(required=NodeSelector(node_selector_terms=(term,))),
        ),
        status=PersistentVolumeStatus(phase="Available"),
    )


def a_cluster_with_volumes(
    gpus: Mapping[str, int], *volumes: PersistentVolume, modes: tuple[str, ...] = ()
) -> Inventory:
    """Return nodes, volumes that are there already, and a claim that waits for its first consumer."""
    inventory = an_inventory(*(a_node(name, gpus=count, labels={HOST: name}) for name, count in gpus.items()))
    late = StorageClass(
        metadata=Metadata(name="local"),
        provisioner="kubernetes.io/no-provisioner",
        volume_binding_mode=WAIT_FOR_FIRST_CONSUMER,
    )
    spec = PersistentVolumeClaimSpec(storage_class_name="local", access_modes=modes)
    for each in (late, PersistentVolumeClaim(metadata=Metadata(name="data", namespace=NAMESPACE), spec=spec), *volumes):
        inventory.apply(each)
    return inventory


def put_sharers(inventory: Inventory, count: int, *, parts: tuple[str, ...] = ()) -> None:
    """Put a gang whose pods share the claim; with ``parts``, so many pods of each."""
    sets = tuple(PodSet(part, count) for part in parts)
    gang = a_gang("g", minimum=count, root=GroupSet("", sets) if parts else None)
    pods = [
        a_pod(f"{part or 'g'}-{number}", gang="g", pod_set=part, gpus=1, volumes=SHARED)
        for part in parts or ("",)
        for number in range(count)
    ]
    put_gang(inventory, gang, pods)


@pytest.mark.parametrize("room", [{"a": 1, "b": 2}, {"a": 2, "b": 1}])
def test_pods_that_share_a_claim_go_where_one_volume_serves_them(room: dict[str, int]) -> None:
    """Each node has a volume, and only one has room for all: the claim gets one volume, so they go there."""
    inventory = a_cluster_with_volumes(room, a_volume("of-a", "a"), a_volume("of-b", "b"))
    put_sharers(inventory, 2)

    large = max(room, key=lambda name: room[name])
    assert placements(a_scheduler(inventory)) == {"g-0": large, "g-1": large}


@pytest.mark.parametrize("room", [{"a": 1, "b": 2}, {"a": 2, "b": 1}])
def test_parts_of_a_gang_that_share_a_claim_stay_together(room: dict[str, int]) -> None:
    """It does not matter of which part the pods are."""
    inventory = a_cluster_with_volumes(room, a_volume("of-a", "a"), a_volume("of-b", "b"))
    put_sharers(inventory, 1, parts=("leader", "worker"))

    large = max(room, key=lambda name: room[name])
    assert placements(a_scheduler(inventory)) == {"leader-0": large, "worker-0": large}


def test_pods_that_no_one_volume_serves_wait_and_say_so() -> None:
    """Each would have a volume by itself: the gang is not placed, and learns what it needs."""
    inventory = a_cluster_with_volumes({"a": 1, "b": 1}, a_volume("of-a", "a"), a_volume("of-b", "b"))
    put_sharers(inventory, 2)
    result = a_scheduler(inventory).run_cycle()

    assert not result.binds
    messages = [error.message for error in result.unschedulable[0].errors]
    assert any("its pods share data, which has no volume yet" in message for message in messages), messages


def test_a_volume_that_all_nodes_reach_is_taken_for_pods_that_are_apart() -> None:
    """A smaller volume would do for one of them; what the binder gives the claim serves both."""
    everywhere = a_volume("everywhere", "a", "b", size="2Gi")
    inventory = a_cluster_with_volumes({"a": 1, "b": 1}, a_volume("of-a", "a"), a_volume("of-b", "b"), everywhere)
    put_sharers(inventory, 2)
    session = a_scheduler(inventory).open_session()
    (job,) = session.pending_jobs()
    statement = session.statement()
    assert place_job(session, statement, job)
    statement.commit()
    assert {task.node_name for task in job.tasks} == {"a", "b"}
    view = session.nodes.view
    claim = view.storage.claims[NAMESPACE, "data"]
    for name in ("a", "b"):
        given = volumes_on_node(view, [claim], session.nodes.named(name).row)
        assert given["data"].metadata.name == "everywhere"
    session.close()


def test_a_claim_for_one_pod_cannot_be_shared_by_a_gang() -> None:
    """ReadWriteOncePod says so; a gang that needs two such pods waits, and says why."""
    inventory = a_cluster_with_volumes({"a": 4}, a_volume("of-a", "a"), modes=("ReadWriteOncePod",))
    put_sharers(inventory, 2)
    result = a_scheduler(inventory).run_cycle()

    assert not result.binds
    messages = [error.message for error in result.unschedulable[0].errors]
    assert any("data is ReadWriteOncePod, for one pod, and 2 of its pods use it" in each for each in messages), messages

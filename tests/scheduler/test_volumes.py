"""Volumes: pods wait for their claims, each for its own."""

from spinney.api.core import EphemeralVolume, Volume
from spinney.api.meta import Metadata, OwnerReference
from spinney.api.storage import (
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    StorageClass,
)
from spinney.scheduler.intake.inventory import Inventory
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

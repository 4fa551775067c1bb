"""Device claims: pods go where the devices are, and devices are given out once."""

import msgspec
import pytest

from spinney.api.core import PodResourceClaim, PodResourceClaimStatus
from spinney.api.meta import Metadata
from spinney.api.resource_claims import (
    AllocatedDevice,
    Allocation,
    CelSelector,
    ClaimConsumer,
    DeviceAllocation,
    DeviceClaim,
    DeviceClass,
    DeviceClassSpec,
    DeviceRequest,
    DeviceSelector,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
)
from spinney.scheduler.fairshare.amounts import GPU
from spinney.scheduler.framework.results import CycleResult
from spinney.scheduler.intake.inventory import Inventory
from tests.scheduler.building import (
    NAMESPACE,
    QUEUE,
    a_gang,
    a_node,
    a_pod,
    a_scheduler,
    a_session,
    an_inventory,
    put_gang,
)
from tests.scheduler.devices import CLASS, publish_devices, put_claim


def a_cluster(**devices: int) -> Inventory:
    """Return nodes without plugin GPUs, with so many published devices each."""
    inventory = an_inventory(*(a_node(name, gpus=0) for name in devices))
    publish_devices(inventory, devices)
    return inventory


def put_user(inventory: Inventory, name: str, claim: str) -> None:
    """Put a pod that uses a claim into an inventory."""
    claims = (PodResourceClaim(name="c", resource_claim_name=claim),)
    put_gang(inventory, a_gang(name), [a_pod(name, gang=name, resource_claims=claims)])


def run(inventory: Inventory) -> CycleResult:
    return a_scheduler(inventory).run_cycle()


def test_a_claim_is_allocated_where_devices_are_free() -> None:
    """The pod goes to a node with enough devices, and the bind says which."""
    inventory = a_cluster(small=1, large=2)
    put_claim(inventory, "two", 2)
    put_user(inventory, "p", "two")
    (bind,) = run(inventory).binds

    assert bind.node == "large"
    assert [device.name for devices in bind.claims.values() for device in devices] == ["0", "1"]


def test_devices_are_given_out_once() -> None:
    """Two claims for one device each do not fit a node with one."""
    inventory = a_cluster(n1=1)
    for name in ("a", "b"):
        put_claim(inventory, name)
        put_user(inventory, f"p-{name}", name)
    result = run(inventory)

    assert [bind.pod.name for bind in result.binds] == ["p-a"]


def test_users_of_one_claim_share_a_node() -> None:
    """A claim that is allocated binds its other users to the same node."""
    inventory = a_cluster(n1=2, n2=2)
    put_claim(inventory, "shared")
    put_user(inventory, "a", "shared")
    put_user(inventory, "b", "shared")

    assert len({bind.node for bind in run(inventory).binds}) == 1


def test_a_shared_gpu_claim_belongs_to_a_queue() -> None:
    """A job of another queue may not use it."""
    inventory = a_cluster(n1=1)
    put_claim(inventory, "theirs", queue="other")
    put_user(inventory, "p", "theirs")
    (unschedulable,) = run(inventory).unschedulable

    assert "is for queue other" in unschedulable.errors[0].message


def test_a_claim_gets_devices_that_match_its_selectors() -> None:
    """Selectors decide about node and devices."""
    inventory = a_cluster(small=1, large=4)
    selector = CelSelector(expression=f'device.attributes["{CLASS}"].index >= 2')
    put_claim(inventory, "choosy", 2, selectors=(DeviceSelector(cel=selector),))
    put_user(inventory, "p", "choosy")
    (bind,) = run(inventory).binds

    assert bind.node == "large"
    assert [device.name for devices in bind.claims.values() for device in devices] == ["2", "3"]


def test_a_claim_that_cannot_be_judged_is_refused() -> None:
    """A selector of an unknown kind is not passed over: the claim is not allocated, and says so."""
    inventory = a_cluster(n1=1)
    put_claim(inventory, "choosy", selectors=(DeviceSelector(),))
    put_user(inventory, "p", "choosy")
    (unschedulable,) = run(inventory).unschedulable

    assert "selectors of a kind that is not known" in unschedulable.errors[0].message


def test_a_claim_of_a_missing_class_says_so() -> None:
    """A claim whose device class nobody made waits with that reason."""
    inventory = a_cluster(n1=1)
    inventory.delete(DeviceClass(metadata=Metadata(name=CLASS)))
    put_claim(inventory, "lost")
    put_user(inventory, "p", "lost")
    (unschedulable,) = run(inventory).unschedulable

    assert f"device class {CLASS} does not exist" in unschedulable.errors[0].message


def test_an_eviction_that_is_undone_gives_back_the_same_devices() -> None:
    """After a rollback a claim holds the devices it held before, not others that happened to be free."""
    inventory = a_cluster(n1=4)
    selector = CelSelector(expression=f'device.attributes["{CLASS}"].index == 3')
    put_claim(inventory, "last", selectors=(DeviceSelector(cel=selector),))
    put_user(inventory, "p", "last")
    session = a_scheduler(inventory).open_session()
    (job,) = session.pending_jobs()
    (task,) = job.tasks
    placing = session.statement()
    placing.allocate(task, session.node("n1"))
    placing.commit()
    held = session.devices.of_task(task)

    moving = session.statement()
    moving.evict(task)
    assert not any(session.devices.of_task(task).values())
    moving.discard()

    assert session.devices.of_task(task) == held
    session.close()


def test_a_missing_claim_is_named() -> None:
    """A pod that names a claim nobody made waits with that reason."""
    inventory = a_cluster(n1=1)
    put_user(inventory, "p", "ghost")
    (unschedulable,) = run(inventory).unschedulable

    assert "ghost does not exist" in unschedulable.errors[0].message
    assert "ghost does not exist" in unschedulable.message, "what the user reads must say so too"


def put_template_user(inventory: Inventory, name: str, *, made: bool, priority: int = 50) -> None:
    """Put a pod whose claim for a network card comes from a template, and the claim if it was made."""
    claims = (PodResourceClaim(name="c", resource_claim_template_name="card"),)
    pod = a_pod(name, gang=name, gpus=1, resource_claims=claims)
    if made:
        put_claim(inventory, f"{name}-c", device_class="nic.example.com")
        statuses = (PodResourceClaimStatus(name="c", resource_claim_name=f"{name}-c"),)
        status = msgspec.structs.replace(pod.status, resource_claim_statuses=statuses)
        pod = msgspec.structs.replace(pod, status=status)
    put_gang(inventory, a_gang(name, priority=priority), [pod])


def test_a_job_whose_claim_was_not_made_holds_up_no_other() -> None:
    """A younger job of the same form whose claim was made from the template is placed."""
    inventory = an_inventory(a_node("n1", gpus=2))
    publish_devices(inventory, {"n1": 2}, "nic.example.com")
    put_template_user(inventory, "a", made=False)
    put_template_user(inventory, "b", made=True)

    assert [bind.pod.name for bind in run(inventory).binds] == ["b"]


def test_a_job_whose_claim_was_not_made_keeps_no_other_from_its_victims() -> None:
    """Room is made for a job of the same form whose claim was made."""
    inventory = an_inventory(a_node("n1", gpus=1))
    publish_devices(inventory, {"n1": 1}, "nic.example.com")
    put_gang(inventory, a_gang("low"), [a_pod("low", gang="low", cpu="64", node="n1")])
    put_template_user(inventory, "a", made=False, priority=70)
    put_template_user(inventory, "b", made=True, priority=70)

    assert [eviction.beneficiary.name for eviction in run(inventory).evictions if eviction.beneficiary] == ["b"]


@pytest.mark.parametrize("node", ["", "n1"])
def test_a_claim_for_more_devices_than_there_are_numbers_holds_nobody_up(node: str) -> None:
    """Its own pod waits, or is where it says it is; others are placed."""
    inventory = a_cluster(n1=1, n2=1)
    most = ExactDeviceRequest(device_class_name=CLASS, count=2**63 - 1)
    requests = tuple(DeviceRequest(name=name, exactly=most) for name in "ab")
    metadata = Metadata(name="all", namespace="team", labels={"kai.scheduler/queue": "default-queue"})
    inventory.apply(ResourceClaim(metadata=metadata, spec=ResourceClaimSpec(devices=DeviceClaim(requests=requests))))
    claims = (PodResourceClaim(name="c", resource_claim_name="all"),)
    inventory.apply(a_pod("absurd", node=node, resource_claims=claims))
    inventory.apply(a_pod("sound"))
    result = run(inventory)

    assert [bind.pod.name for bind in result.binds] == ["sound"]
    assert not result.failures


def test_a_pod_that_was_put_on_a_node_without_its_devices_holds_none() -> None:
    """Whoever names a node in a pod, and claims that nobody allocates, takes no devices from others."""
    inventory = a_cluster(n1=2)
    put_claim(inventory, "never", 2)
    claims = (PodResourceClaim(name="c", resource_claim_name="never"),)
    put_gang(inventory, a_gang("put"), [a_pod("put", gang="put", node="n1", resource_claims=claims)])
    put_claim(inventory, "two", 2)
    put_user(inventory, "p", "two")
    (bind,) = run(inventory).binds
    assert bind.pod.name == "p"


def test_what_a_pod_with_claims_asks_for_cannot_be_written_to() -> None:
    """All pods of its kind share it, as they share what pods without claims ask for."""
    inventory = a_cluster(n1=1)
    put_claim(inventory, "one")
    put_user(inventory, "p", "one")
    session = a_session(inventory)
    (job,) = session.jobs
    (task,) = job.tasks
    assert task.request.gpus == 1
    with pytest.raises(ValueError, match="read-only"):
        task.request.requests[0] *= 2


def a_mixed_cluster(allocatable: int, published: int) -> Inventory:
    """Return a node with GPUs in its allocatable and others that a driver publishes."""
    inventory = an_inventory(a_node("n", gpus=allocatable))
    publish_devices(inventory, {"n": published})
    return inventory


@pytest.mark.parametrize("together", [False, True])
def test_gpus_of_drivers_are_for_claims_alone(together: bool) -> None:
    """Pods that ask for GPUs without a claim get what is allocatable; those with one get the devices, all at once."""
    inventory = a_mixed_cluster(allocatable=1, published=2)
    for name in ("c-0", "c-1"):
        put_claim(inventory, name)
        put_user(inventory, name, name)
    for name in ("a", "b"):
        gang = "both" if together else name
        put_gang(inventory, a_gang(gang, minimum=2 if together else 1), [a_pod(name, gang=gang, gpus=1)])
    result = run(inventory)

    assert {bind.pod.name for bind in result.binds} == ({"c-0", "c-1"} if together else {"a", "c-0", "c-1"})
    (unschedulable,) = result.unschedulable
    assert together or "nvidia.com/gpu without a claim" in str(unschedulable.explanation)


def test_a_gang_that_asks_for_more_than_is_allocatable_learns_why() -> None:
    """GPUs for claims are no help to a pod without one, and it is told how many there are for it."""
    inventory = a_mixed_cluster(allocatable=1, published=2)
    put_gang(inventory, a_gang("g"), [a_pod("g", gang="g", gpus=2)])
    (unschedulable,) = run(inventory).unschedulable

    offered = "the pod requests 2 nvidia.com/gpu without a claim, but the largest node offers 1"
    assert offered in unschedulable.errors[0].message


def test_a_pod_waits_for_a_gpu_that_it_may_have() -> None:
    """What is terminating is its own kind of GPU: it is promised that one, not bound to one that is for claims."""
    inventory = a_mixed_cluster(allocatable=1, published=2)
    put_gang(inventory, a_gang("old"), [a_pod("old", gang="old", gpus=1, node="n", terminating=True)])
    put_gang(inventory, a_gang("new"), [a_pod("new", gang="new", gpus=1)])
    result = run(inventory)

    assert not result.binds
    assert [each.node for each in result.pipelines] == ["n"]


def test_victims_are_those_whose_gpus_help() -> None:
    """Who has a GPU through a claim does not go for a pod that asks for one without."""
    inventory = a_mixed_cluster(allocatable=1, published=1)
    given = AllocatedDevice(request="r", driver=CLASS, pool="n", device="0")
    held = ResourceClaim(
        metadata=Metadata(name="c", namespace=NAMESPACE, labels={"kai.scheduler/queue": QUEUE}),
        spec=ResourceClaimSpec(
            devices=DeviceClaim(
                requests=(DeviceRequest(name="r", exactly=ExactDeviceRequest(device_class_name=CLASS, count=1)),)
            )
        ),
        status=ResourceClaimStatus(
            allocation=Allocation(devices=DeviceAllocation(results=(given,))),
            reserved_for=(ClaimConsumer(resource="pods", name="claiming", uid="claiming"),),
        ),
    )
    inventory.apply(held)
    claims = (PodResourceClaim(name="c", resource_claim_name="c"),)
    claiming = a_pod("claiming", gang="claiming", node="n", resource_claims=claims)
    put_gang(inventory, a_gang("claiming", priority=10), [claiming])
    put_gang(inventory, a_gang("plain", priority=60), [a_pod("plain", gang="plain", gpus=1, node="n")])
    put_gang(inventory, a_gang("urgent", priority=90), [a_pod("urgent", gang="urgent", gpus=1)])
    result = run(inventory)

    assert [eviction.pod.name for eviction in result.evictions] == ["plain"]


def test_devices_that_are_no_gpus_count_as_none() -> None:
    """A driver may publish anything, such as channels of a network: a node has no more GPUs for it."""
    inventory = an_inventory(a_node("n", gpus=1))
    publish_devices(inventory, {"n": 16}, "channel.example.com")
    for name in ("a", "b"):
        put_gang(inventory, a_gang(name), [a_pod(name, gang=name, gpus=1)])
    result = run(inventory)

    assert [bind.pod.name for bind in result.binds] == ["a"]
    assert inventory.offered().gpu == GPU
    assert "without a claim" not in result.unschedulable[0].errors[0].message


def test_devices_count_as_gpus_where_a_class_of_gpus_selects_them() -> None:
    """A class of GPUs that selects devices by an attribute leaves the rest out."""
    inventory = an_inventory(a_node("n", gpus=0))
    publish_devices(inventory, {"n": 4})
    first = DeviceSelector(cel=CelSelector(expression=f"device.attributes['{CLASS}'].index < 1"))
    inventory.apply(DeviceClass(metadata=Metadata(name=CLASS), spec=DeviceClassSpec(selectors=(first,))))

    assert inventory.offered().gpu == GPU

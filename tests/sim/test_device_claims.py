"""Devices in a simulation: pods that are evicted or end give them up, and a snapshot shows who has them."""

import msgspec

from spinney.api.core import PodResourceClaim
from spinney.api.meta import Metadata, OwnerReference
from spinney.api.resource_claims import (
    RESOURCE_CLAIM,
    Device,
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from spinney.cluster.pods import PodKey
from spinney.runtime import Runtime
from spinney.sim.snapshots.snapshot import ClusterSnapshot
from spinney.sim.whatif.simulation import Simulation
from tests.scheduler.building import NAMESPACE, QUEUE, a_node, a_pod

CLASS = "gpu.example.com"


def a_claim(name: str) -> ResourceClaim:
    exactly = ExactDeviceRequest(device_class_name=CLASS, count=1)
    requests = (DeviceRequest(name="r", exactly=exactly),)
    return ResourceClaim(
        metadata=Metadata(name=name, namespace=NAMESPACE, uid=name, labels={"kai.scheduler/queue": QUEUE}),
        spec=ResourceClaimSpec(devices=DeviceClaim(requests=requests)),
    )


def a_user(name: str, *, priority: int) -> object:
    """Return a pod that somebody owns and that uses the claim of its name."""
    claims = (PodResourceClaim(name="c", resource_claim_name=name),)
    pod = a_pod(name, resource_claims=claims, priority=priority)
    owner = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="r", uid="r", controller=True)
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, owner_references=(owner,)))


def a_simulation() -> Simulation:
    """Return a node with one device, and a pod of low priority that has just got it."""
    published = ResourceSliceSpec(
        driver=CLASS, pool=ResourcePool(name="n0"), node_name="n0", devices=(Device(name="0"),)
    )
    objects = [
        a_node("n0", gpus=0),
        DeviceClass(metadata=Metadata(name=CLASS)),
        ResourceSlice(metadata=Metadata(name="n0"), spec=published),
        a_claim("low"),
        a_user("low", priority=10),
    ]
    simulation = Simulation(ClusterSnapshot(source="here").with_objects(objects), runtime=Runtime.system())
    assert simulation.run().placed == {PodKey(NAMESPACE, "low"): "n0"}
    return simulation


def test_an_evicted_pod_gives_up_its_devices() -> None:
    """A pod of higher priority gets the device in the cycle after the eviction, and the snapshot says so."""
    simulation = a_simulation()
    simulation.add([a_claim("high"), a_user("high", priority=90)])

    outcome = simulation.run()

    assert outcome.placed == {PodKey(NAMESPACE, "high"): "n0"}
    claims = {each.metadata.name: each for each in simulation.current().objects[RESOURCE_CLAIM]}
    assert claims["low"].status.allocation is None
    assert claims["low"].status.reserved_for == ()
    (user,) = claims["high"].status.reserved_for
    assert user.name == "high"


def test_a_pod_that_ends_gives_up_its_devices() -> None:
    """The next pod gets the device of one that has succeeded; a simulation of what is there then agrees."""
    simulation = a_simulation()
    simulation.complete(PodKey(NAMESPACE, "low"))
    simulation.add([a_claim("next"), a_user("next", priority=10)])
    assert simulation.run().placed == {PodKey(NAMESPACE, "next"): "n0"}

    again = Simulation(simulation.current(), runtime=Runtime.system())
    again.add([a_claim("third"), a_user("third", priority=10)])
    assert again.run().placed == {}

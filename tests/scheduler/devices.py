"""Devices that nodes publish, and claims for them."""

from collections.abc import Mapping

from spinney.api.meta import Metadata
from spinney.api.resource_claims import (
    Device,
    DeviceAttribute,
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    DeviceSelector,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from spinney.scheduler.intake.inventory import Inventory
from tests.scheduler.building import NAMESPACE, QUEUE

CLASS = "gpu.example.com"


def publish_devices(inventory: Inventory, devices: Mapping[str, int], device_class: str = CLASS) -> None:
    """Have nodes publish so many devices each."""
    inventory.apply(DeviceClass(metadata=Metadata(name=device_class)))
    for name, count in devices.items():
        spec = ResourceSliceSpec(
            driver="gpu.example.com",
            pool=ResourcePool(name=name),
            node_name=name,
            devices=tuple(
                Device(name=str(number), attributes={"index": DeviceAttribute(int_value=number)})
                for number in range(count)
            ),
        )
        inventory.apply(ResourceSlice(metadata=Metadata(name=name), spec=spec))


def put_claim(
    inventory: Inventory,
    name: str,
    count: int = 1,
    *,
    namespace: str = NAMESPACE,
    queue: str = QUEUE,
    selectors: tuple[DeviceSelector, ...] = (),
    device_class: str = CLASS,
) -> None:
    """Put a claim for devices, GPUs unless told, into an inventory."""
    exactly = ExactDeviceRequest(device_class_name=device_class, count=count, selectors=selectors)
    inventory.apply(
        ResourceClaim(
            metadata=Metadata(name=name, namespace=namespace, labels={"kai.scheduler/queue": queue}),
            spec=ResourceClaimSpec(devices=DeviceClaim(requests=(DeviceRequest(name="r", exactly=exactly),))),
        )
    )

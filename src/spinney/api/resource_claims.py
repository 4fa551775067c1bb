"""Dynamic resource allocation (``resource.k8s.io/v1``): claims, the devices drivers publish, and device classes."""

from collections.abc import Mapping
from typing import Final

import msgspec

from spinney.api.affinity import NodeSelector, Taint, Toleration
from spinney.api.meta import ProjectedObject
from spinney.api.quantity import RawQuantity
from spinney.api.resource import Resource
from spinney.api.struct import JSON, Struct

RESOURCE_CLAIM: Final = Resource("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims")
RESOURCE_CLAIM_TEMPLATE: Final = Resource("resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates")
RESOURCE_SLICE: Final = Resource("resource.k8s.io", "v1", "ResourceSlice", "resourceslices", namespaced=False)
DEVICE_CLASS: Final = Resource("resource.k8s.io", "v1", "DeviceClass", "deviceclasses", namespaced=False)

EXACT_COUNT: Final = "ExactCount"
ALL_DEVICES: Final = "All"


class CelSelector(Struct, frozen=True, kw_only=True):
    """A CEL expression over ``device``."""

    expression: str


class DeviceSelector(Struct, frozen=True, kw_only=True):
    """A condition a device must meet; one without a form this version knows matches no device."""

    cel: CelSelector | None = None


class CapacityRequirements(Struct, frozen=True, kw_only=True):
    """How much of a shareable device is asked for."""

    requests: Mapping[str, RawQuantity] = {}


class _Devices(Struct, frozen=True, kw_only=True):
    """Devices of one class; one when neither count nor mode is given."""

    device_class_name: str
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int = 0
    tolerations: tuple[Toleration, ...] = ()
    capacity: CapacityRequirements | None = None


class ExactDeviceRequest(_Devices, frozen=True, kw_only=True):
    """Devices of one class, and no others."""

    admin_access: bool | None = None


class DeviceSubRequest(_Devices, frozen=True, kw_only=True):
    """One of several alternatives, in order of preference."""

    name: str


class DeviceRequest(Struct, frozen=True, kw_only=True):
    """Devices asked for: exactly these, or the first alternative that is available."""

    name: str
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(Struct, frozen=True, kw_only=True):
    """An attribute that devices of several requests must share, or must differ in."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaim(Struct, frozen=True, kw_only=True):
    """Requests and what relates them; driver configuration is carried verbatim."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[JSON, ...] = ()


class ResourceClaimSpec(Struct, frozen=True, kw_only=True):
    """What is asked for."""

    devices: DeviceClaim = DeviceClaim()


class AllocatedDevice(Struct, frozen=True, kw_only=True):
    """A device given to a request."""

    request: str
    driver: str
    pool: str
    device: str
    admin_access: bool | None = None
    tolerations: tuple[Toleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()


class DeviceAllocation(Struct, frozen=True, kw_only=True):
    """The devices of a claim."""

    results: tuple[AllocatedDevice, ...] = ()
    config: tuple[JSON, ...] = ()


class Allocation(Struct, frozen=True, kw_only=True):
    """What a claim was given, and from where it can be used."""

    devices: DeviceAllocation = DeviceAllocation()
    node_selector: NodeSelector | None = None


class ClaimConsumer(Struct, frozen=True, kw_only=True):
    """Who may use an allocated claim."""

    api_group: str = ""
    resource: str
    name: str
    uid: str


class ResourceClaimStatus(Struct, frozen=True, kw_only=True):
    """Whether a claim is allocated, and for whom."""

    allocation: Allocation | None = None
    reserved_for: tuple[ClaimConsumer, ...] = ()


class ResourceClaim(ProjectedObject, of=RESOURCE_CLAIM, frozen=True, kw_only=True):
    """A claim, projected."""

    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourcePool(Struct, frozen=True, kw_only=True):
    """Slices that belong together; only those of the highest generation count, once all have arrived."""

    name: str
    generation: int = 0
    resource_slice_count: int = 1


class DeviceAttribute(Struct, frozen=True, kw_only=True):
    """A typed fact about a device: exactly one of these is set."""

    int_value: int | None = msgspec.field(default=None, name="int")
    bool_value: bool | None = msgspec.field(default=None, name="bool")
    string_value: str | None = msgspec.field(default=None, name="string")
    version_value: str | None = msgspec.field(default=None, name="version")


class DeviceCapacity(Struct, frozen=True, kw_only=True):
    """How much of something a device has."""

    value: RawQuantity


class Counter(Struct, frozen=True, kw_only=True):
    """An amount of something partitions of a device share."""

    value: RawQuantity


class CounterSet(Struct, frozen=True, kw_only=True):
    """What partitions of a device draw from."""

    name: str
    counters: Mapping[str, Counter] = {}


class CounterConsumption(Struct, frozen=True, kw_only=True):
    """What one partition draws from a counter set."""

    counter_set: str
    counters: Mapping[str, Counter] = {}


class Device(Struct, frozen=True, kw_only=True):
    """A device as its driver publishes it."""

    name: str
    attributes: Mapping[str, DeviceAttribute] = {}
    capacity: Mapping[str, DeviceCapacity] = {}
    consumes_counters: tuple[CounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    taints: tuple[Taint, ...] = ()
    allow_multiple_allocations: bool | None = None
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()


class ResourceSliceSpec(Struct, frozen=True, kw_only=True):
    """Devices of a pool, and which nodes reach them."""

    driver: str
    pool: ResourcePool
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(ProjectedObject, of=RESOURCE_SLICE, frozen=True, kw_only=True):
    """Devices published by a driver, projected."""

    spec: ResourceSliceSpec


class DeviceClassSpec(Struct, frozen=True, kw_only=True):
    """What devices of a class have in common."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[JSON, ...] = ()


class DeviceClass(ProjectedObject, of=DEVICE_CLASS, frozen=True, kw_only=True):
    """A kind of device that claims can name."""

    spec: DeviceClassSpec = DeviceClassSpec()

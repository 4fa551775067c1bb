"""Device claims (DRA): which devices nodes publish, which claims hold which, and for whom.

The book is kept from watch events and forked for a session, which allocates and frees claims as it places and evicts
tasks. A claim is allocated on the node of its first consumer and freed with its last. Device selectors are not
evaluated here: a claim or class that has any is refused, with that reason.
"""

from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from spinney.api.core import Pod
from spinney.api.resource_claims import DeviceClass, ResourceClaim, ResourceSlice

MAX_CONSUMERS: Final = 256
"""Kubernetes reserves a claim for at most that many pods."""
QUEUE_LABEL: Final = "kai.scheduler/queue"


class ClaimKey(NamedTuple):
    """Namespace and name of a claim."""

    namespace: str
    name: str


class PublishedDevice(NamedTuple):
    """A device of a node, as its driver names it."""

    driver: str
    pool: str
    name: str


@dataclass(frozen=True)
class ClaimState:
    """A claim: what it asks for, what it holds, and who uses it."""

    key: ClaimKey
    device_class: str = ""
    count: int = 0
    queue: str = ""
    """The queue whose jobs may use it, from its label."""
    node: str = ""
    devices: tuple[PublishedDevice, ...] = ()
    consumers: frozenset[str] = frozenset()
    """Uids of the pods it is reserved for."""
    problem: str = ""
    """Why it can never be allocated; empty if it can."""
    made_for_pod: bool = False

    @property
    def allocated(self) -> bool:
        """Tell whether it holds devices."""
        return bool(self.devices)

    @property
    def gpus(self) -> int:
        """Return how many GPUs it counts as: devices of a class whose name speaks of GPUs."""
        return self.count if "gpu" in self.device_class else 0


@dataclass
class ClaimBook:
    """Devices and claims. Mutable; forked for sessions."""

    claims: dict[ClaimKey, ClaimState] = field(default_factory=dict)
    slices: dict[str, ResourceSlice] = field(default_factory=dict)
    classes: dict[str, DeviceClass] = field(default_factory=dict)

    def fork(self) -> "ClaimBook":
        """Return an independent copy."""
        return ClaimBook(dict(self.claims), dict(self.slices), dict(self.classes))

    def apply(self, found: ResourceClaim | ResourceSlice | DeviceClass) -> None:
        """Take in an object that appeared or changed."""
        if isinstance(found, ResourceSlice):
            self.slices[found.metadata.name] = found
        elif isinstance(found, DeviceClass):
            self.classes[found.metadata.name] = found
        else:
            state = self._state(found)
            self.claims[state.key] = state

    def delete(self, found: ResourceClaim | ResourceSlice | DeviceClass) -> None:
        """Take out an object that is gone."""
        name = found.metadata.name
        if isinstance(found, ResourceSlice):
            self.slices.pop(name, None)
        elif isinstance(found, DeviceClass):
            self.classes.pop(name, None)
        else:
            self.claims.pop(ClaimKey(found.metadata.namespace or "", name), None)

    def devices(self) -> dict[str, list[PublishedDevice]]:
        """Return the devices that belong to one node, by node, in slice and device order."""
        found: dict[str, list[PublishedDevice]] = {}
        for name in sorted(self.slices):
            spec = self.slices[name].spec
            if spec.node_name:
                mine = found.setdefault(spec.node_name, [])
                mine += [PublishedDevice(spec.driver, spec.pool.name, device.name) for device in spec.devices]
        return found

    def taken(self) -> set[PublishedDevice]:
        """Return the devices that claims hold."""
        return {device for claim in self.claims.values() for device in claim.devices}

    def assign(self, key: ClaimKey, node: str, devices: tuple[PublishedDevice, ...], consumer: str) -> None:
        """Give a claim devices, unless it has some, and reserve it for a consumer."""
        claim = self.claims[key]
        if not claim.allocated:
            claim = replace(claim, node=node, devices=devices)
        self.claims[key] = replace(claim, consumers=claim.consumers | {consumer})

    def release(self, key: ClaimKey, consumer: str) -> None:
        """End a reservation; the last one frees the devices."""
        claim = self.claims[key]
        consumers = claim.consumers - {consumer}
        if not consumers:
            claim = replace(claim, node="", devices=())
        self.claims[key] = replace(claim, consumers=consumers)

    def _state(self, found: ResourceClaim) -> ClaimState:
        metadata = found.metadata
        device_class, count, problem = "", 0, ""
        for request in found.spec.devices.requests:
            exactly = request.exactly
            if exactly is None:
                problem = f"request {request.name} offers alternatives, which are not supported"
                continue
            if exactly.selectors:
                problem = f"request {request.name} has device selectors, which are not evaluated"
            if exactly.allocation_mode == "All":
                problem = f"request {request.name} asks for all devices, which is not supported"
            device_class = exactly.device_class_name
            count += exactly.count or 1
        allocation = found.status.allocation
        results = allocation.devices.results if allocation is not None else ()
        devices = tuple(PublishedDevice(each.driver, each.pool, each.device) for each in results)
        return ClaimState(
            key=ClaimKey(metadata.namespace or "", metadata.name),
            device_class=device_class,
            count=count,
            queue=metadata.labels.get(QUEUE_LABEL, ""),
            node=self._node_of(devices),
            devices=devices,
            consumers=frozenset(consumer.uid for consumer in found.status.reserved_for),
            problem=problem,
            made_for_pod=any(owner.kind == "Pod" for owner in metadata.owner_references),
        )

    def _node_of(self, devices: tuple[PublishedDevice, ...]) -> str:
        if not devices:
            return ""
        pools = {slice_.spec.pool.name: slice_.spec.node_name for slice_ in self.slices.values()}
        return pools.get(devices[0].pool) or devices[0].pool


def claims_of(pod: Pod) -> list[ClaimKey]:
    """Return the claims a pod uses: those it names, and those made for it from templates."""
    namespace = pod.metadata.namespace or ""
    made = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
    names = (claim.resource_claim_name or made.get(claim.name) for claim in pod.spec.resource_claims)
    return [ClaimKey(namespace, name) for name in names if name]

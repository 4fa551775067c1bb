"""Device claims: what each asks for, which devices it holds, and for whom.

The book is kept from watch events and forked for a session, which allocates and frees claims as it places and evicts
tasks. A claim is allocated on the node of its first consumer and freed with its last. What was decided but is not
written yet is assumed, so that no device is given out twice while its claim is on the way to the API server.
"""

from collections import Counter
from collections.abc import Iterable, KeysView, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from spinney.api.core import Pod
from spinney.api.labels import KAI_QUEUE
from spinney.api.resource_claims import Allocation, DeviceClass, ResourceClaim, ResourceSlice
from spinney.api.struct import JSON
from spinney.cluster.dra.allocating import GivenDevice, is_within_counters
from spinney.cluster.dra.catalogue import DeviceCatalogue, PublishedDevice
from spinney.cluster.dra.requests import ClaimDemand, ask_of
from spinney.kube.keys import Key, key_of

MAX_CONSUMERS: Final = 256
"""Kubernetes reserves a claim for at most that many pods."""

ClaimKey = Key
"""Namespace and name of a claim."""


@dataclass(frozen=True)
class ClaimState:
    """A claim: what it asks for, what it holds, and who uses it."""

    key: ClaimKey
    ask: ClaimDemand = ClaimDemand()  # noqa: RUF009 - a frozen value
    queue: str = ""
    """The queue whose jobs may use it, from its label."""
    node: str = ""
    devices: tuple[GivenDevice, ...] = ()
    consumers: frozenset[str] = frozenset()
    """Uids of the pods it is reserved for."""
    made_for_pod: bool = False
    config: tuple[JSON, ...] = ()

    @property
    def allocated(self) -> bool:
        """Tell whether it holds devices."""
        return bool(self.devices)

    @property
    def gpus(self) -> int:
        """Return how many GPUs it counts as."""
        return self.ask.gpus


class ClaimBook:
    """Devices and claims. Mutable; forked for sessions."""

    def __init__(self) -> None:
        self.claims: dict[ClaimKey, ClaimState] = {}
        """Claims as they are, with what is assumed; written to by this book alone."""
        self._taken: Counter[PublishedDevice] = Counter()
        """How many claims hold each device."""
        self._slices: dict[str, ResourceSlice] = {}
        self._classes: dict[str, DeviceClass] = {}
        self._catalogue: DeviceCatalogue | None = None
        self._seen: dict[ClaimKey, ClaimState] = {}
        self._assumed: dict[ClaimKey, ClaimState] = {}

    def fork(self) -> "ClaimBook":
        """Return an independent copy."""
        copy = ClaimBook()
        copy.claims = dict(self.claims)
        copy._taken = self._taken.copy()
        copy._catalogue = self.catalogue
        return copy

    @property
    def catalogue(self) -> DeviceCatalogue:
        """Return the devices as they are published now."""
        if self._catalogue is None:
            self._catalogue = DeviceCatalogue(self._slices.values(), self._classes)
        return self._catalogue

    # -- objects coming and going ------------------------------------------------------------------------------------

    def apply(self, found: ResourceClaim | ResourceSlice | DeviceClass) -> None:
        """Take in an object that appeared or changed."""
        if isinstance(found, ResourceClaim):
            state = self._state(found)
            self._seen[state.key] = state
            self._merge(state.key)
        else:
            self._published(found)[found.metadata.name] = found

    def delete(self, found: ResourceClaim | ResourceSlice | DeviceClass) -> None:
        """Take out an object that is gone."""
        if isinstance(found, ResourceClaim):
            self._count(self.claims.pop(key_of(found), None), -1)
            for book in (self._seen, self._assumed):
                book.pop(key_of(found), None)
        else:
            self._published(found).pop(found.metadata.name, None)

    def _published(self, found: ResourceSlice | DeviceClass) -> dict[str, Any]:
        """Return the book of slices or that of classes, to be changed: the catalogue is made anew then."""
        self._catalogue = None
        return self._slices if isinstance(found, ResourceSlice) else self._classes

    # -- decided, not yet written ------------------------------------------------------------------------------------

    def may_hold(self, key: ClaimKey, devices: Iterable[GivenDevice]) -> bool:
        """Tell whether a claim holds these devices already, or can still be given them."""
        claim = self.claims.get(key)
        if claim is None:
            return False
        if claim.allocated:
            return {each.published for each in claim.devices} == {each.published for each in devices}
        wanted = [each.published for each in devices if not each.admin]
        taken = self.taken()
        if not taken.isdisjoint(wanted):
            return False
        return not wanted or is_within_counters(self.catalogue, self.catalogue.node_of(wanted[0]), wanted, taken)

    def assume(self, key: ClaimKey, node: str, devices: tuple[GivenDevice, ...], consumer: str) -> None:
        """Count a claim as allocated and reserved from now on, until the API server shows it or it is forgotten."""
        before = self._assumed.get(key) or ClaimState(key)
        self._assumed[key] = replace(
            before, node=before.node or node, devices=before.devices or devices, consumers=before.consumers | {consumer}
        )
        self._merge(key)

    def forget(self, key: ClaimKey, consumer: str) -> None:
        """Drop the assumption about one consumer; the last one takes the assumed devices with it."""
        assumed = self._assumed.get(key)
        if assumed is not None:
            self._assumed[key] = replace(assumed, consumers=assumed.consumers - {consumer})
            self._merge(key)

    def _merge(self, key: ClaimKey) -> None:
        """Lay what is assumed over what was seen; an assumption that has been confirmed ends."""
        seen, assumed = self._seen.get(key), self._assumed.get(key)
        if assumed is not None:
            open_ = assumed.consumers - seen.consumers if seen is not None else assumed.consumers
            if not open_:
                del self._assumed[key]
                assumed = None
            else:
                assumed = self._assumed[key] = replace(assumed, consumers=open_)
        if seen is None:
            return
        if assumed is None:
            self._put(seen)
        elif seen.allocated:
            self._put(replace(seen, consumers=seen.consumers | assumed.consumers))
        else:
            consumers = seen.consumers | assumed.consumers
            self._put(replace(seen, node=assumed.node, devices=assumed.devices, consumers=consumers))

    def _put(self, state: ClaimState) -> None:
        """Have a claim be as it is now."""
        before = self.claims.get(state.key)
        self.claims[state.key] = state
        if before is None or before.devices != state.devices:
            self._count(before, -1)
            self._count(state, 1)

    def _count(self, state: ClaimState | None, step: int) -> None:
        for device in state.devices if state is not None else ():
            if not device.admin:
                self._taken[device.published] += step
                if not self._taken[device.published]:
                    del self._taken[device.published]

    # -- allocating in a session -------------------------------------------------------------------------------------

    def taken(self) -> KeysView[PublishedDevice]:
        """Return the devices that claims hold, but for those that only look on, as it is at the moment."""
        return self._taken.keys()

    def assign(self, key: ClaimKey, node: str, devices: tuple[GivenDevice, ...], consumer: str) -> None:
        """Give a claim devices, unless it has some, and reserve it for a consumer."""
        claim = self.claims[key]
        if not claim.allocated:
            claim = replace(claim, node=node, devices=devices)
        self._put(replace(claim, consumers=claim.consumers | {consumer}))

    def release(self, key: ClaimKey, consumer: str) -> None:
        """End a reservation; the last one frees the devices."""
        claim = self.claims[key]
        consumers = claim.consumers - {consumer}
        if not consumers:
            claim = replace(claim, node="", devices=())
        self._put(replace(claim, consumers=consumers))

    def problem(self, claim: ClaimState) -> str:
        """Return why a claim can never be allocated; empty if it can."""
        if claim.ask.problem:
            return claim.ask.problem
        for request in claim.ask.requests:
            problems = [self.catalogue.problem(option) for option in request.options]
            if all(problems):
                return problems[0] if problems else f"request {request.name} asks for nothing"
        return ""

    def missing_classes(self, claim: ClaimState) -> list[str]:
        """Return the device classes of requests for which no class exists."""
        asked = [[option.device_class for option in request.options] for request in claim.ask.requests]
        missing = (each for each in asked if not any(map(self.catalogue.has_class, each)))
        return [name for names in missing for name in names]

    def config(self, key: ClaimKey, devices: Iterable[GivenDevice]) -> tuple[JSON, ...]:
        """Return what the drivers of allocated devices are told: by their classes, then by the claim."""
        claim = self.claims[key]
        used = {device.request for device in devices}
        options = [option for request in claim.ask.requests for option in request.options if option.request in used]
        of_classes = [item for option in options for item in self.catalogue.config(option)]
        return (*of_classes, *({"source": "FromClaim", **item} for item in claim.config))

    def _state(self, found: ResourceClaim) -> ClaimState:
        metadata = found.metadata
        devices = devices_of(found)
        return ClaimState(
            key=key_of(found),
            ask=ask_of(found.spec),
            queue=metadata.labels.get(KAI_QUEUE, ""),
            node=self._node(found.status.allocation, devices),
            devices=devices,
            consumers=frozenset(consumer.uid for consumer in found.status.reserved_for),
            made_for_pod=any(owner.kind == "Pod" for owner in metadata.owner_references),
            config=found.spec.devices.config,
        )

    def _node(self, allocation: Allocation | None, devices: tuple[GivenDevice, ...]) -> str:
        """Return the node an allocated claim can be used on: as the allocation says, else that of its devices."""
        if allocation is not None and allocation.node_selector is not None:
            for term in allocation.node_selector.node_selector_terms:
                for field in term.match_fields:
                    if field.key == "metadata.name" and field.values:
                        return field.values[0]
        return self.catalogue.node_of(devices[0].published) if devices else ""


def devices_of(found: ResourceClaim) -> tuple[GivenDevice, ...]:
    """Return the devices that a claim was given."""
    allocation = found.status.allocation
    return tuple(
        GivenDevice(each.request, each.driver, each.pool, each.device, admin=bool(each.admin_access))
        for each in (allocation.devices.results if allocation is not None else ())
    )


def claims_of(pod: Pod) -> list[ClaimKey]:
    """Return the claims a pod uses: those it names, and those made for it from templates."""
    namespace = pod.metadata.namespace or ""
    made: Mapping[str, str | None] = {
        each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses
    }
    names = (claim.resource_claim_name or made.get(claim.name) for claim in pod.spec.resource_claims)
    return [ClaimKey(namespace, name) for name in names if name]

"""What pods of a recording claim, devices and volumes, and how each of these objects was when it came.

A claim comes into a replay as it was asked for; which devices or volume it gets is decided there. What was given before
the first snapshot is as it was, and so are volumes that no pod decides about: those of a class that binds at once, and
of claims that name their volume.

A volume that was there before its claim is free until the replay gives it away. One that was provisioned for a claim is
made by the replay, and reaches as far as those of its class did: nodes with the same values of the same labels.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from spinney.api.core import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from spinney.api.labels import KAI_QUEUE
from spinney.api.meta import Metadata
from spinney.api.resource import Resource
from spinney.api.resource_claims import (
    DEVICE_CLASS,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    ResourceClaim,
    ResourceClaimStatus,
)
from spinney.api.storage import (
    STORAGE_CLASS,
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimStatus,
    PersistentVolumeStatus,
    StorageClass,
)
from spinney.cluster.dra.allocating import GivenDevice
from spinney.cluster.dra.book import devices_of
from spinney.cluster.filters.storage import class_name
from spinney.kube.keys import Key, key_of
from spinney.sim.replay.trace import ClusterChange
from spinney.sim.snapshots.snapshot import Differing

CLAIMED: Final = (
    STORAGE_CLASS,
    PERSISTENT_VOLUME_CLAIM,
    PERSISTENT_VOLUME,
    DEVICE_CLASS,
    RESOURCE_SLICE,
    RESOURCE_CLAIM,
)
"""The kinds that are read here, in the order they are looked at."""
_NEEDED: Final[Mapping[Resource, tuple[Resource, ...]]] = {
    PERSISTENT_VOLUME_CLAIM: (PERSISTENT_VOLUME_CLAIM, PERSISTENT_VOLUME, STORAGE_CLASS),
    RESOURCE_CLAIM: (RESOURCE_CLAIM, RESOURCE_SLICE, DEVICE_CLASS),
}
"""What has to be known for claims of a kind to be met."""
_FOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
_PROVISIONED: Final = "pv.kubernetes.io/provisioned-by"
_KEPT: Final = frozenset({"pv.kubernetes.io/bind-completed", "volume.beta.kubernetes.io/storage-class"})
"""Annotations that say how a claim stands."""

_Named = tuple[Resource, Key]


class RecordedClaims:
    """The claims that snapshots have shown so far, and what they are met with. Mutable."""

    def __init__(self, came: Callable[[float, Differing], float]) -> None:
        self._came = came
        self._last: dict[_Named, Any] = {}
        """What is there, as a replay has it."""
        self._known: set[_Named] = set()
        self._seen: set[Resource] = set()
        self._hidden: set[Resource] = set()
        self._waiting_classes: set[str] = set()
        """Storage classes whose claims wait for a pod that uses them."""
        self._bound_before: set[tuple[Key, str | None]] = set()
        """Claims with a volume in the first snapshot, and their uids."""
        self._late: set[tuple[Key, str | None]] = set()
        """Claims that get their volume in the replay."""
        self._changes: list[ClusterChange] = []
        self.holding: dict[Key, tuple[GivenDevice, ...]] = {}
        """The devices of claims in the first snapshot."""
        self.reach: dict[str, tuple[str, ...]] = {}
        """By storage class, the node labels whose values a volume shares with the node it was provisioned for."""

    def see(self, at: float, found: Iterable[Differing], hidden: Iterable[Resource]) -> None:
        """Take in what is not as it was in the snapshot before, in which some kinds may be ``hidden``."""
        self._hidden.update(hidden)
        for each in sorted(found, key=lambda each: CLAIMED.index(each.resource)):
            if each.new is not None:
                self._seen.add(each.resource)
            if at == 0:
                self._begin_with(each.new)
            self._see_one(at, each)

    def _begin_with(self, found: Any) -> None:
        if isinstance(found, ResourceClaim) and (devices := devices_of(found)):
            self.holding[key_of(found)] = devices
        if isinstance(found, PersistentVolumeClaim) and found.bound:
            self._bound_before.add((key_of(found), found.metadata.uid))

    def _see_one(self, at: float, each: Differing) -> None:
        name = each.resource, key_of(each.old if each.new is None else each.new)
        old, new = self._last.get(name), self._as_asked(each.new)
        if new == old:
            return
        if new is None:
            self._changes.append(ClusterChange(at, self._last.pop(name), gone=True))
        else:
            self._known.add(name)
            self._last[name] = new
            self._changes.append(ClusterChange(self._came(at, each), new))

    def explains(self, resource: Resource, key: Key, *, started: bool) -> bool:
        """Tell whether a pod goes by a claim it names: one that was there, or that may be what it waited for.

        A pod that had a node had its claims, too; those that no snapshot has cannot be played.
        """
        if any(needed in self._hidden - self._seen for needed in _NEEDED[resource]):
            return False
        return not started or (resource, key) in self._known

    def changes(self, queues: Mapping[Key, str]) -> list[ClusterChange]:
        """Return what came and went, claims that are in ``queues`` with that queue."""
        return [_in_queue(each, queues) for each in self._changes]

    # -- as it was asked for -----------------------------------------------------------------------------------------

    def _as_asked(self, found: Any) -> Any:
        """Return an object without what a replay decides; one that is about to go, or is made there, is not there."""
        if found is None or found.metadata.deleting:
            return None
        metadata = found.metadata
        kept = Metadata(
            name=metadata.name,
            namespace=metadata.namespace,
            uid=metadata.uid,
            labels=metadata.labels,
            annotations={key: text for key, text in metadata.annotations.items() if key in _KEPT},
            owner_references=metadata.owner_references,
        )
        plain = replace(found, metadata=kept)
        match found:
            case ResourceClaim():
                return replace(plain, status=ResourceClaimStatus())
            case StorageClass() if found.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER:
                self._waiting_classes.add(metadata.name)
            case PersistentVolumeClaim() if self._is_late(found):
                self._late.add((key_of(found), metadata.uid))
                return _unbound(plain)
            case PersistentVolume() if self._is_of_late_claim(found):
                if _PROVISIONED in metadata.annotations:
                    self._note_reach(found)
                    return None
                return replace(
                    plain, spec=replace(found.spec, claim_ref=None), status=PersistentVolumeStatus(phase="Available")
                )
        return plain

    def _is_late(self, claim: PersistentVolumeClaim) -> bool:
        """Tell whether a claim gets its volume where a pod of the replay is."""
        if class_name(claim) not in self._waiting_classes or (key_of(claim), claim.metadata.uid) in self._bound_before:
            return False
        return not claim.spec.volume_name or _FOUND_BY_CONTROLLER in claim.metadata.annotations

    def _is_of_late_claim(self, volume: PersistentVolume) -> bool:
        owner = volume.spec.claim_ref
        return owner is not None and (Key(owner.namespace or "", owner.name), owner.uid) in self._late

    def _note_reach(self, volume: PersistentVolume) -> None:
        affinity = volume.spec.node_affinity
        terms = affinity.required.node_selector_terms if affinity is not None and affinity.required is not None else ()
        self.reach[class_name(volume)] = tuple(sorted({each.key for term in terms for each in term.match_expressions}))


def _unbound(claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    annotations = {key: text for key, text in claim.metadata.annotations.items() if not key.endswith("/bind-completed")}
    return replace(
        claim,
        metadata=replace(claim.metadata, annotations=annotations),
        spec=replace(claim.spec, volume_name=""),
        status=PersistentVolumeClaimStatus(phase="Pending"),
    )


def _in_queue(change: ClusterChange, queues: Mapping[Key, str]) -> ClusterChange:
    found = change.found
    if not isinstance(found, ResourceClaim) or (queue := queues.get(key_of(found))) is None:
        return change
    metadata = replace(found.metadata, labels={**found.metadata.labels, KAI_QUEUE: queue})
    return ClusterChange(change.at, replace(found, metadata=metadata), change.gone)

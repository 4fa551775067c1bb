"""What pods of a recording claim, and how each of these objects was when it came.

A claim comes into a replay as it was asked for. Which devices it gets is decided there; only those that hold devices in
the first snapshot begin with them, together with the pods that use them.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from msgspec.structs import replace

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
from spinney.cluster.dra.allocating import GivenDevice
from spinney.cluster.dra.book import devices_of
from spinney.kube.keys import Key, key_of
from spinney.sim.replay.trace import ClusterChange
from spinney.sim.snapshots.snapshot import Differing

CLAIMED: Final = (DEVICE_CLASS, RESOURCE_SLICE, RESOURCE_CLAIM)
"""The kinds that are read here, in the order they are looked at."""


class RecordedClaims:
    """The claims that snapshots have shown so far, and what they are met with. Mutable."""

    def __init__(self, came: Callable[[float, Differing], float]) -> None:
        self._came = came
        self._known: set[tuple[Resource, Key]] = set()
        self._changes: list[ClusterChange] = []
        self.holding: dict[Key, tuple[GivenDevice, ...]] = {}
        """The devices of claims in the first snapshot."""

    def see(self, at: float, found: Iterable[Differing]) -> None:
        """Take in what is not as it was in the snapshot before."""
        for each in sorted(found, key=lambda each: CLAIMED.index(each.resource)):
            if at == 0 and isinstance(each.new, ResourceClaim) and (devices := devices_of(each.new)):
                self.holding[key_of(each.new)] = devices
            self._see_one(at, each, _as_asked(each.old), _as_asked(each.new))

    def _see_one(self, at: float, each: Differing, old: Any, new: Any) -> None:
        if new is None and old is not None:
            self._changes.append(ClusterChange(at, old, gone=True))
        elif new is not None and new != old:
            self._known.add((each.resource, key_of(new)))
            self._changes.append(ClusterChange(self._came(at, each), new))

    def has_seen(self, resource: Resource, key: Key) -> bool:
        """Tell whether a claim was ever there."""
        return (resource, key) in self._known

    def changes(self, queues: Mapping[Key, str]) -> list[ClusterChange]:
        """Return what came and went, claims that are in ``queues`` with that queue."""
        return [_in_queue(each, queues) for each in self._changes]


def _in_queue(change: ClusterChange, queues: Mapping[Key, str]) -> ClusterChange:
    found = change.found
    if not isinstance(found, ResourceClaim) or (queue := queues.get(key_of(found))) is None:
        return change
    metadata = replace(found.metadata, labels={**found.metadata.labels, KAI_QUEUE: queue})
    return ClusterChange(change.at, replace(found, metadata=metadata), change.gone)


def _as_asked(found: Any) -> Any:
    """Return an object without what was decided about it; one that is about to go counts as gone."""
    if found is None or found.metadata.deleting:
        return None
    metadata = found.metadata
    kept = Metadata(
        name=metadata.name,
        namespace=metadata.namespace,
        uid=metadata.uid,
        labels=metadata.labels,
        owner_references=metadata.owner_references,
    )
    decided = {"status": ResourceClaimStatus()} if isinstance(found, ResourceClaim) else {}
    return replace(found, metadata=kept, **decided)

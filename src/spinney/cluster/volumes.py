"""The volumes there are, with those that placed pods are about to take counted as theirs.

A claim that waits for its first consumer gets an existing volume only when its pod is bound. Until then the volume is
*assumed* to be the claim's: the next pod does not count on it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec.structs import replace

from spinney.api.core import PERSISTENT_VOLUME_CLAIM
from spinney.api.events import ObjectReference
from spinney.api.storage import PersistentVolume, PersistentVolumeClaim


class Volumes(Mapping[str, PersistentVolume]):
    """Persistent volumes by name. Mutable; fed by watch events and by decisions."""

    def __init__(self) -> None:
        self._seen: dict[str, PersistentVolume] = {}
        self._assumed: dict[str, PersistentVolume] = {}
        self.changed: Callable[[], None] = lambda: None
        """Called when a volume is assumed to be taken, or is not any more."""

    def put(self, name: str, volume: PersistentVolume | None) -> None:
        """Take in a volume as the API server shows it, ``None`` if it is gone; what it says of its claim counts."""
        if volume is None:
            self._seen.pop(name, None)
        else:
            self._seen[name] = volume
        if volume is None or volume.spec.claim_ref is not None:
            self._assumed.pop(name, None)

    def assume(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> None:
        """Count a volume as a claim's."""
        metadata = claim.metadata
        owner = ObjectReference(
            api_version=PERSISTENT_VOLUME_CLAIM.api_version,
            kind=PERSISTENT_VOLUME_CLAIM.kind,
            namespace=metadata.namespace or "",
            name=metadata.name,
            uid=metadata.uid or "",
        )
        self._assumed[volume.metadata.name] = replace(volume, spec=replace(volume.spec, claim_ref=owner))
        self.changed()

    def forget(self, names: Iterable[str]) -> None:
        """Count volumes as free again that were only assumed to be taken."""
        for name in names:
            self._assumed.pop(name, None)
        self.changed()

    def __getitem__(self, name: str) -> PersistentVolume:
        found = self._assumed.get(name)
        return found if found is not None else self._seen[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._seen)

    def __len__(self) -> int:
        return len(self._seen)

"""What constraints of pods refer to beside nodes and pods: namespaces and their labels, volumes, claims and classes.

Kept up to date by watch events and shown to the filters. A session works in another thread, so it gets copies, which
are made anew only when something changed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from spinney.api.core import PERSISTENT_VOLUME_CLAIM, Namespace
from spinney.api.events import ObjectReference
from spinney.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from spinney.cluster.filters.storage import Storage
from spinney.kube.keys import Key


class Volumes(Mapping[str, PersistentVolume]):
    """Persistent volumes by name. Mutable; fed by watch events and by decisions.

    A claim that waits for its first consumer gets an existing volume only when its pod is bound. Until then the volume
    is *assumed* to be the claim's: the next pod does not count on it.
    """

    def __init__(self) -> None:
        self._seen: dict[str, PersistentVolume] = {}
        self._assumed: dict[str, PersistentVolume] = {}
        self.changed: Callable[[], None] = lambda: None
        """Called when a volume is assumed to be taken, or is not any more."""

    def put(self, name: str, volume: PersistentVolume | None) -> None:
        """Take in a volume as the API server shows it, ``None`` if it is gone; what it says of its claim counts."""
        keep(self._seen, name, volume)
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


class Surroundings:
    """Namespaces and storage of the cluster. Mutable; one writer."""

    KINDS: Final = frozenset({Namespace, PersistentVolumeClaim, PersistentVolume, StorageClass})

    def __init__(self) -> None:
        self.namespaces: dict[str, Mapping[str, str]] = {}
        """The labels of namespaces as they are now."""
        self.volumes = Volumes()
        """Volumes as they are now, with those that pods about to be bound take."""
        self._claims: dict[tuple[str, str], PersistentVolumeClaim] = {}
        self._classes: dict[str, StorageClass] = {}
        self.storage = Storage(self._claims, self.volumes, self._classes)
        """Storage as it is now, for code on the event loop."""
        self._copies: tuple[Mapping[str, Mapping[str, str]], Storage] | None = None
        self.volumes.changed = self._forget_copies

    def put(self, kind: type[Any], key: Key, found: Any) -> None:
        """Take in an object of one of :attr:`KINDS`, ``None`` if it is gone."""
        self._forget_copies()
        if kind is PersistentVolume:
            self.volumes.put(key.name, found)
        elif kind is PersistentVolumeClaim:
            keep(self._claims, (key.namespace, key.name), found)
        elif kind is StorageClass:
            keep(self._classes, key.name, found)
        else:
            keep(self.namespaces, key.name, found and found.metadata.labels)

    def copies(self) -> tuple[Mapping[str, Mapping[str, str]], Storage]:
        """Return namespaces and storage as they are now, not to change any more."""
        if self._copies is None:
            storage = Storage(dict(self._claims), dict(self.volumes), dict(self._classes))
            self._copies = dict(self.namespaces), storage
        return self._copies

    def _forget_copies(self) -> None:
        self._copies = None


def keep(book: dict[Any, Any], key: object, value: object) -> bool:
    """Keep a value in a book, or none; tell whether that is news."""
    if value is None:
        return book.pop(key, None) is not None
    before = book.get(key)
    book[key] = value
    return before is not value

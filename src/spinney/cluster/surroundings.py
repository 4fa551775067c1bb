"""What constraints of pods refer to beside nodes and pods: namespaces and their labels, volumes, claims and classes.

Kept up to date by watch events and shown to the filters. A session works in another thread, so it gets copies, which
are made anew only when something changed.
"""

from collections.abc import Mapping
from typing import Any, Final

from spinney.api.core import Namespace
from spinney.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from spinney.cluster.filters.storage import Storage
from spinney.cluster.volumes import Volumes
from spinney.kube.keys import Key


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
            _keep(self._claims, (key.namespace, key.name), found)
        elif kind is StorageClass:
            _keep(self._classes, key.name, found)
        else:
            _keep(self.namespaces, key.name, found and found.metadata.labels)

    def copies(self) -> tuple[Mapping[str, Mapping[str, str]], Storage]:
        """Return namespaces and storage as they are now, not to change any more."""
        if self._copies is None:
            storage = Storage(dict(self._claims), dict(self.volumes), dict(self._classes))
            self._copies = dict(self.namespaces), storage
        return self._copies

    def _forget_copies(self) -> None:
        self._copies = None


def _keep(book: dict[Any, Any], key: object, value: object) -> None:
    if value is None:
        book.pop(key, None)
    else:
        book[key] = value

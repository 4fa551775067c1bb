"""What constraints of pods refer to beside nodes and pods: namespaces and their labels, volumes, claims and classes.

Kept up to date by watch events and shown to the filters. A session works in another thread, so it gets copies, which
are made anew only when something changed.
"""

from collections.abc import Hashable, Mapping
from typing import Any

import msgspec

from spinney.api.core import NAMESPACE
from spinney.api.meta import Metadata
from spinney.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from spinney.api.struct import Struct, constant
from spinney.cluster.filters.storage import Storage


class Namespace(Struct, frozen=True, kw_only=True):
    """A namespace, projected: affinity looks at its labels."""

    api_version: str = constant(NAMESPACE.api_version)
    kind: str = constant(NAMESPACE.kind)
    metadata: Metadata = Metadata()


class Surroundings:
    """Namespaces and storage of the cluster. Mutable; one writer."""

    def __init__(self) -> None:
        self._namespaces: dict[str, Mapping[str, str]] = {}
        self._claims: dict[tuple[str, str], PersistentVolumeClaim] = {}
        self._volumes: dict[str, PersistentVolume] = {}
        self._classes: dict[str, StorageClass] = {}
        self.live = Storage(self._claims, self._volumes, self._classes)
        """Storage as it is now, for whoever looks on the event loop."""
        self._copies: tuple[Mapping[str, Mapping[str, str]], Storage] | None = None

    @property
    def namespaces(self) -> Mapping[str, Mapping[str, str]]:
        """Return the labels of namespaces as they are now."""
        return self._namespaces

    def apply(self, found: msgspec.Struct) -> bool:
        """Take in an object; return whether it is of a kind that is kept here."""
        place = self._place(found)
        if place is None:
            return False
        book, key = place
        book[key] = found.metadata.labels if isinstance(found, Namespace) else found
        self._copies = None
        return True

    def delete(self, found: msgspec.Struct) -> bool:
        """Take out an object; return whether it is of a kind that is kept here."""
        place = self._place(found)
        if place is None:
            return False
        book, key = place
        book.pop(key, None)
        self._copies = None
        return True

    def copies(self) -> tuple[Mapping[str, Mapping[str, str]], Storage]:
        """Return namespaces and storage as they are now, not to change any more."""
        if self._copies is None:
            storage = Storage(dict(self._claims), dict(self._volumes), dict(self._classes))
            self._copies = dict(self._namespaces), storage
        return self._copies

    def _place(self, found: msgspec.Struct) -> tuple[dict[Any, Any], Hashable] | None:
        match found:
            case Namespace():
                return self._namespaces, found.metadata.name
            case PersistentVolumeClaim():
                return self._claims, (found.metadata.namespace or "", found.metadata.name)
            case PersistentVolume():
                return self._volumes, found.metadata.name
            case StorageClass():
                return self._classes, found.metadata.name
            case _:
                return None

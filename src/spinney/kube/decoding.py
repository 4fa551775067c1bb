"""What watch caches decode with: lines of a watch become objects that share equal parts with those before.

In a process that has the whole cluster in it, several caches hold the same kind as the same type and are sent the same
lines. They have one decoder in common, which remembers what it decoded last: the second cache is given the very object
that the first one holds. Objects are frozen, so nobody can tell.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

from spinney.kube.sharing import Sharing
from spinney.kube.watching import Bookmark, EventDecoder, Undecodable, WatchEvent

T = TypeVar("T")

REMEMBERED_BYTES = 8 * 1024 * 1024
"""How far behind the first cache another one may be and find what it decoded: some two thousand pods."""


class ObjectDecoder(Generic[T]):
    """Decodes the events of one kind for one cache. Mutable: it knows the parts that may repeat."""

    def __init__(self, kind: type[T]) -> None:
        self._events = EventDecoder(kind)
        decoded_as: Any = kind
        self._sharing: Sharing | None = Sharing() if isinstance(decoded_as, msgspec.StructMeta) else None

    def decode(self, line: bytes) -> WatchEvent[T] | Bookmark | Undecodable:
        """Decode one line; an ``ERROR`` event raises the :class:`~spinney.kube.errors.ApiError` it carries."""
        event = self._events.decode(line)
        if isinstance(event, WatchEvent):
            self.share(event.object)
        return event

    def share(self, obj: Any) -> None:
        """Replace the parts of an object just decoded by equal ones seen before."""
        if self._sharing is not None:
            self._sharing.share(obj)


class _CommonDecoder(ObjectDecoder[T]):
    """Decodes for several caches. Mutable: it remembers what it decoded last."""

    def __init__(self, kind: type[T], remembered_bytes: int) -> None:
        super().__init__(kind)
        self._recent: dict[bytes, WatchEvent[T] | Bookmark | Undecodable] = {}
        self._size, self._limit = 0, remembered_bytes

    def decode(self, line: bytes) -> WatchEvent[T] | Bookmark | Undecodable:
        found = self._recent.get(line)
        if found is None:
            found = self._recent[line] = super().decode(line)
            self._size += len(line)
            while self._size > self._limit:
                eldest = next(iter(self._recent))
                del self._recent[eldest]
                self._size -= len(eldest)
        return found


class CommonDecoders:
    """The decoders of all clients of one process and one API server, by type. Mutable."""

    def __init__(self, remembered_bytes: int = REMEMBERED_BYTES) -> None:
        self._limit = remembered_bytes
        self._decoders: dict[type[Any], ObjectDecoder[Any]] = {}

    def of(self, kind: type[Any]) -> ObjectDecoder[Any]:
        """Return the decoder of a type, the same one for every cache."""
        if kind not in self._decoders:
            self._decoders[kind] = _CommonDecoder(kind, self._limit)
        return self._decoders[kind]


DecoderFor = Callable[[type[Any]], ObjectDecoder[Any]]
"""Gives a cache its decoder: one of its own, or one that it has in common with others."""

"""Large dictionaries of which copies are taken all the time.

A copy of a dictionary touches everything in it. Here copies share a layer that nobody writes to any more and have what
changed since on top, so that taking one costs what changed. When the top has grown large it becomes part of a new
shared layer, which is paid for by the many changes that made it grow.
"""

from collections.abc import Hashable, Iterator
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_LEAST: Final = 1024
_PART: Final = 8


class LayeredDict(Generic[K, V]):
    """A dictionary without ``None`` values whose forks are cheap. Mutable; forks do not see each other's changes."""

    __slots__ = ("_base", "_is_shared", "_length", "_top")

    def __init__(self) -> None:
        self._base: dict[K, V] = {}
        self._top: dict[K, V | None] = {}
        """What differs from the base; ``None`` for what is gone. Empty while the base is not shared."""
        self._is_shared = False
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __contains__(self, key: object) -> bool:
        return self._top[key] is not None if key in self._top else key in self._base

    def get(self, key: K) -> V | None:
        """Return the value of a key, if it is there."""
        return self._top[key] if key in self._top else self._base.get(key)

    def __setitem__(self, key: K, value: V) -> None:
        if self.get(key) is None:
            self._length += 1
        if self._is_shared:
            self._top[key] = value
        else:
            self._base[key] = value

    def pop(self, key: K) -> V | None:
        """Take a key out and return its value; ``None`` if it is not there."""
        if not self._is_shared:
            value = self._base.pop(key, None)
        else:
            value = self.get(key)
            if value is not None:
                self._top[key] = None
        self._length -= value is not None
        return value

    def items(self) -> Iterator[tuple[K, V]]:
        """Return keys and values: first those of the shared layer, then those that came since."""
        top = self._top
        for key, value in self._base.items():
            if key not in top:
                yield key, value
        for key, changed in top.items():
            if changed is not None:
                yield key, changed

    def values(self) -> Iterator[V]:
        """Return the values, in the order of :meth:`items`."""
        return (value for _, value in self.items())

    def fork(self) -> "LayeredDict[K, V]":
        """Return an independent copy."""
        if len(self._top) > _LEAST + len(self._base) // _PART:
            self._base, self._top = dict(self.items()), {}
        self._is_shared = True
        copy: LayeredDict[K, V] = LayeredDict()
        copy._base, copy._top = self._base, dict(self._top)
        copy._is_shared, copy._length = True, self._length
        return copy

"""Indexes of a cache: which objects have a given value, kept up to date with every change."""

from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

from spinney.kube.keys import Key

T = TypeVar("T")

IndexFunction = Callable[[T], Iterable[Hashable]]


class Index(Generic[T]):
    """Maps each value to the keys of the objects that have it. Mutable, owned by one cache."""

    def __init__(self, values_of: IndexFunction[T]) -> None:
        self._values_of = values_of
        self._keys: dict[Hashable, dict[Key, None]] = {}

    def update(self, key: Key, old: T | None, new: T | None) -> None:
        """Move ``key`` from the values of ``old`` to the values of ``new``."""
        before = set(self._values_of(old)) if old is not None else set()
        after = set(self._values_of(new)) if new is not None else set()
        for value in before - after:
            keys = self._keys[value]
            del keys[key]
            if not keys:
                del self._keys[value]
        for value in after - before:
            self._keys.setdefault(value, {})[key] = None

    def keys(self, value: Hashable) -> list[Key]:
        """Return the keys of the objects that have ``value``, in key order."""
        return sorted(self._keys.get(value, ()))

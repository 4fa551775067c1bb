"""Pods counted on each node, by whatever they are counted for.

A fork shares each vector until either side writes to it. There are as many vectors as rules that placed pods carry,
thousands if somebody's pods have that many terms, and a session touches few of them.
"""

from collections.abc import Iterator
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.int64]
"""Pods per node, ``[node]``."""
K = TypeVar("K")


class CountVectors(Generic[K]):
    """Vectors by key. Mutable; what is read is not to be written to."""

    __slots__ = ("_own", "_vectors")

    def __init__(self) -> None:
        self._vectors: dict[K, Counts] = {}
        self._own: set[K] = set()
        """Those that no fork shares."""

    def __len__(self) -> int:
        return len(self._vectors)

    def __contains__(self, key: K) -> bool:
        return key in self._vectors

    def __iter__(self) -> Iterator[K]:
        return iter(self._vectors)

    def of(self, key: K, capacity: int) -> Counts | None:
        """Return the vector of a key, at least ``capacity`` rows long, if there is one."""
        counts = self._vectors.get(key)
        if counts is not None and len(counts) < capacity:
            counts = np.pad(counts, (0, capacity - len(counts)))
            self.put(key, counts)
        return counts

    def put(self, key: K, counts: Counts) -> None:
        """Have a vector of the caller's own stand for a key."""
        self._vectors[key] = counts
        self._own.add(key)

    def add(self, key: K, row: int, pods: int, capacity: int) -> Counts:
        """Count so many more pods on a row; return the vector as it is then."""
        counts = self.of(key, capacity)
        if counts is None:
            counts = np.zeros(capacity, dtype=np.int64)
            self.put(key, counts)
        elif key not in self._own:
            counts = counts.copy()
            self.put(key, counts)
        counts[row] += pods
        return counts

    def discard(self, key: K) -> None:
        """Forget a key."""
        del self._vectors[key]
        self._own.discard(key)

    def clear(self) -> None:
        """Forget all."""
        self._vectors, self._own = {}, set()

    def fork(self) -> "CountVectors[K]":
        """Return an independent copy."""
        copy: CountVectors[K] = CountVectors()
        copy._vectors = dict(self._vectors)
        self._own = set()
        return copy

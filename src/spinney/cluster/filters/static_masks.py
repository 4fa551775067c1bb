"""Masks that depend on nodes alone, kept per constraint and refreshed only where nodes changed.

A filter over labels or taints gives the same answer for every pod with the same constraint until a node changes. The
node table's static journal says which rows did; only those are judged again.
"""

from collections.abc import Callable, Hashable
from threading import Lock
from typing import Final

import msgspec
import numpy as np

from spinney.cluster.journal import Rows
from spinney.cluster.table import Mask, NodeTable

Kernel = Callable[[NodeTable, Rows], Mask]
"""Judges the given rows of a table: one truth per row given."""

_KEEP: Final = 4096


class _Entry(msgspec.Struct, frozen=True):
    mask: Mask
    position: int


class StaticMasks:
    """Masks by filter and constraint. Mutable: a cache that may be shared by the forks of one table.

    Forks share the numbering of the static journal, and none of them writes to it, so an entry computed on one is right
    for another; an entry from the future of an older fork is computed again. Safe to share between threads.
    """

    def __init__(self) -> None:
        self._entries: dict[tuple[str, Hashable], _Entry] = {}
        self._lock = Lock()

    def mask(self, table: NodeTable, name: str, key: Hashable, kernel: Kernel) -> Mask:
        """Return ``kernel`` over all rows of ``table``, ``[node]``. Not to be written to."""
        entry = self._entries.get((name, key))
        position = table.static.position
        if entry is None or entry.mask.shape[0] != table.capacity or entry.position > position:
            entry = _Entry(kernel(table, np.arange(table.capacity)), position)
        elif entry.position < position:
            entry = _Entry(_refreshed(entry, table, kernel), position)
        entry.mask.setflags(write=False)
        with self._lock:
            # Put back last: the first entry is then the one unused for longest.
            self._entries.pop((name, key), None)
            self._entries[name, key] = entry
            if len(self._entries) > _KEEP:
                del self._entries[next(iter(self._entries))]
        return entry.mask


def _refreshed(entry: _Entry, table: NodeTable, kernel: Kernel) -> Mask:
    rows = table.static.since(entry.position)
    if rows is None:
        return kernel(table, np.arange(table.capacity))
    mask = entry.mask.copy()
    mask[rows] = kernel(table, rows)
    return mask

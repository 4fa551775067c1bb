"""A journal of dirtied rows, by which caches over the node table refresh only what changed.

A reader remembers the position up to which it has read and later asks for the rows dirtied since. Entries are bounded:
a reader that fell too far behind is told so and refreshes everything.
"""

from typing import Any, Final, TypeVar, cast

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.intp]
"""Row indices of a node table."""

N = TypeVar("N", bound=np.integer[Any])
_KEEP: Final = 65_536
_REPEATS: Final = 4
"""How often rows are looked for to be repeated: a long list is not gone through to find that it has few."""


class RowJournal:
    """An append-only log of row indices. Mutable; owned by one table."""

    def __init__(self, position: int = 0) -> None:
        self._entries: list[Rows | int] = []
        self._base = position
        self.position = position
        """Where a reader that has seen everything stands."""

    def mark(self, rows: Rows) -> None:
        """Record that ``rows``, all different, changed."""
        if len(self._entries) >= 2 * _KEEP:
            self._forget()
        self._entries.append(rows)
        self.position += 1

    def mark_row(self, row: int) -> None:
        """Record that one row changed."""
        if len(self._entries) >= 2 * _KEEP:
            self._forget()
        self._entries.append(int(row))
        self.position += 1

    def since(self, position: int) -> Rows | None:
        """Return the rows dirtied after ``position``, without repeats; ``None`` means: any may have been."""
        start = position - self._base
        if start < 0:
            return None
        entries = self._entries[start:]
        if not entries:
            return np.empty(0, dtype=np.intp)
        if len(entries) == 1:
            (entry,) = entries
            return np.array([entry], dtype=np.intp) if isinstance(entry, int) else entry
        try:
            return np.array(sorted({*entries}), dtype=np.intp)  # several rows cannot be in a set
        except TypeError:
            pass
        single = [entry for entry in entries if isinstance(entry, int)]
        several = [entry for entry in entries if not isinstance(entry, int)]
        return distinct(np.concatenate([np.array(single, dtype=np.intp), *several]))

    def few_since(self, position: int, most: int) -> list[int] | None:
        """Return the same as numbers, in any order, if they were recorded one by one and are at most so many.

        ``None`` means also: not worth finding out.
        """
        start = position - self._base
        if start < 0 or self.position - position > _REPEATS * most:
            return None
        try:
            rows = {*self._entries[start:]}
        except TypeError:  # several rows cannot be in a set
            return None
        return cast("list[int]", list(rows)) if len(rows) <= most else None

    def _forget(self) -> None:
        del self._entries[:_KEEP]
        self._base += _KEEP

    def fork(self) -> "RowJournal":
        """Return a journal for a copy of the table: same position, with what was recorded so far."""
        copy = RowJournal(self._base)
        copy._entries = list(self._entries)
        copy.position = self.position
        return copy


def distinct(numbers: npt.NDArray[N]) -> npt.NDArray[N]:
    """Return ``numbers`` in order, each once. ``np.unique`` does the same, but imports masked arrays first: 50 ms."""
    ordered = np.sort(numbers)
    is_new = np.ones(len(ordered), dtype=np.bool_)
    is_new[1:] = ordered[1:] != ordered[:-1]
    found: npt.NDArray[N] = ordered[is_new]
    return found

"""A journal of dirtied rows, by which caches over the node table refresh only what changed.

A reader remembers the position up to which it has read and later asks for the rows dirtied since. The last changes are
kept one by one. A reader that is further behind is answered from what is known of each row: when it changed last.

A change may be recorded as one that only takes room. While there are no others, a row that had no room has none.
"""

from typing import Any, Final, TypeVar, cast

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.intp]
"""Row indices of a node table."""

N = TypeVar("N", bound=np.integer[Any])
_KEEP: Final = 4096
_REPEATS: Final = 4
"""How often rows are looked for to be repeated: a long list is not gone through to find that it has few."""
_AT_ONCE: Final = 64
"""So many rows are looked at in an array in the time of one change in a list."""


class RowJournal:
    """An append-only log of row indices. Mutable; owned by one table."""

    def __init__(self, position: int = 0) -> None:
        self._begin = position
        self._entries: list[Rows | int] = []
        """The last of them."""
        self._last_change = np.zeros(0, dtype=np.int64)
        """Where a reader stood who had just seen the last change of each row, ``[row]``."""
        self.position = position
        """Where a reader that has seen everything stands."""
        self._may_give = position
        """Where a reader stood who had just seen the last change that may have given room."""

    def mark(self, rows: Rows, *, only_takes: bool = False) -> None:
        """Record that ``rows``, all different, changed; ``only_takes`` says that none has more room for it."""
        self._append(rows, only_takes=only_takes)
        try:
            self._last_change[rows] = self.position
        except IndexError:
            self._enlarge(int(rows.max()))
            self._last_change[rows] = self.position

    def mark_row(self, row: int, *, only_takes: bool = False) -> None:
        """Record that one row changed."""
        self._append(int(row), only_takes=only_takes)
        try:
            self._last_change[row] = self.position
        except IndexError:
            self._enlarge(row)
            self._last_change[row] = self.position

    def since(self, position: int) -> Rows | None:
        """Return the rows dirtied after ``position``, without repeats; ``None`` means: any may have been."""
        if position < self._begin:
            return None
        changes = self.position - position
        if changes > len(self._entries) or changes * _AT_ONCE > len(self._last_change):
            return np.flatnonzero(self._last_change > position)
        if not changes:
            return np.empty(0, dtype=np.intp)
        entries = self._entries[-changes:]
        if changes == 1:
            (entry,) = entries
            return np.array([entry], dtype=np.intp) if isinstance(entry, int) else entry
        try:
            return np.array(sorted({*entries}), dtype=np.intp)  # several rows cannot be in a set
        except TypeError:
            return np.flatnonzero(self._last_change > position)

    def few_since(self, position: int, most: int) -> list[int] | None:
        """Return the same as numbers, in any order, if they were recorded one by one and are at most so many.

        ``None`` means also: not worth finding out.
        """
        changes = self.position - position
        if position < self._begin or changes > _REPEATS * most or changes > len(self._entries):
            return None
        if changes == 1:
            entry = self._entries[-1]
            return [entry] if isinstance(entry, int) else None
        try:
            rows = {*self._entries[len(self._entries) - changes :]}
        except TypeError:  # several rows cannot be in a set
            return None
        return cast("list[int]", list(rows)) if len(rows) <= most else None

    def only_taken_since(self, position: int) -> bool:
        """Tell whether all changes after ``position`` only took room."""
        return position >= self._may_give

    def fork(self) -> "RowJournal":
        """Return a journal for a copy of the table: same position, with what was recorded so far."""
        copy = RowJournal(self._begin)
        copy._entries = list(self._entries)
        copy._last_change = self._last_change.copy()
        copy.position = self.position
        copy._may_give = self._may_give
        return copy

    def _append(self, entry: Rows | int, *, only_takes: bool) -> None:
        if len(self._entries) >= 2 * _KEEP:
            del self._entries[:_KEEP]
        self._entries.append(entry)
        self.position += 1
        if not only_takes:
            self._may_give = self.position

    def _enlarge(self, row: int) -> None:
        self._last_change = np.pad(self._last_change, (0, 2 * row + 1 - len(self._last_change)))


def distinct(numbers: npt.NDArray[N]) -> npt.NDArray[N]:
    """Return ``numbers`` in order, each once. ``np.unique`` does the same, but imports masked arrays first: 50 ms."""
    ordered = np.sort(numbers)
    is_new = np.ones(len(ordered), dtype=np.bool_)
    is_new[1:] = ordered[1:] != ordered[:-1]
    found: npt.NDArray[N] = ordered[is_new]
    return found

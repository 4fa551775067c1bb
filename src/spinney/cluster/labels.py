"""Node labels and taints in columns, with interned values.

A label key is a column of ``int32`` value numbers, -1 where the node lacks the key; numbers are per key. Node taints
are interned as whole lists: a cluster has a handful of different ones, so a toleration is judged once per list.
Columns are shared between a table and its copies, and copied before the first write.

Nodes come and go, and each brings values of its own (its host name): values that no node has any more are forgotten,
and the others numbered anew, when there are twice as many as there could be nodes. So a number means something only
together with the column and the values it was read with.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from spinney.api.affinity import Taint

Column = npt.NDArray[np.int32]
"""Interned values by row, ``[node]``."""

ABSENT: Final = -1
UNKNOWN: Final = -2
"""The number of a value that no node has: it is in no column."""
_KEYS_KEPT: Final = 256


class LabelColumns:
    """Label columns over the rows of a node table. Mutable; written by its table only."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._columns: dict[str, Column] = {}
        self._values: dict[str, list[str]] = {}
        self._numbers: dict[str, dict[str, int]] = {}
        self._shared: set[str] = set()
        self._empty = np.full(capacity, ABSENT, dtype=np.int32)
        self._enough = _KEYS_KEPT

    def column(self, key: str) -> Column:
        """Return the value numbers of ``key``, -1 where absent. Not to be written to."""
        return self._columns.get(key, self._empty)

    def values(self, key: str) -> Sequence[str]:
        """Return the values of ``key`` by number."""
        return self._values.get(key, ())

    def value_id(self, key: str, value: str) -> int:
        """Return the number of ``value`` in the column of ``key``; :data:`UNKNOWN` if no node has it."""
        return self._numbers.get(key, {}).get(value, UNKNOWN)

    def of_row(self, row: int) -> dict[str, str]:
        """Return the labels of one node."""
        found: dict[str, str] = {}
        for key, column in self._columns.items():
            number = int(column[row])
            if number != ABSENT:
                found[key] = self._values[key][number]
        return found

    def write(self, row: int, labels: Mapping[str, str]) -> None:
        """Replace the labels of one row."""
        for key, column in self._columns.items():
            if key not in labels and column[row] != ABSENT:
                self._writable(key)[row] = ABSENT
        for key, value in labels.items():
            if key not in self._columns:
                self._open(key)
            numbers = self._numbers[key]
            number = numbers.get(value)
            if number is None:
                number = numbers[value] = len(numbers)
                self._values[key].append(value)
            if self._columns[key][row] != number:
                self._writable(key)[row] = number
            if len(numbers) > 2 * self._capacity:
                self._number_anew(key)

    def grow(self, capacity: int) -> None:
        """Make room for more rows."""
        self._capacity = capacity
        for key, column in self._columns.items():
            self._columns[key] = np.pad(column, (0, capacity - len(column)), constant_values=ABSENT)
        self._empty = np.full(capacity, ABSENT, dtype=np.int32)
        self._shared.clear()

    def fork(self) -> "LabelColumns":
        """Return a copy that shares every column until either side writes to it."""
        copy = LabelColumns(self._capacity)
        copy._columns = dict(self._columns)
        # Values are appended or the books replaced, so both sides may go on interning in the same ones.
        copy._values = self._values
        copy._numbers = self._numbers
        copy._empty = self._empty
        copy._enough = self._enough
        self._shared = set(self._columns)
        copy._shared = set(self._columns)
        return copy

    def _open(self, key: str) -> None:
        """Begin a column, forgetting those of keys that no node has any more if there are many."""
        if len(self._columns) >= self._enough:
            self._columns = {each: column for each, column in self._columns.items() if (column != ABSENT).any()}
            self._values = {each: self._values[each] for each in self._columns}
            self._numbers = {each: self._numbers[each] for each in self._columns}
            self._enough = _KEYS_KEPT + 2 * len(self._columns)
        self._columns[key] = self._empty.copy()
        self._values[key] = []
        self._numbers[key] = {}

    def _number_anew(self, key: str) -> None:
        """Forget the values of ``key`` that no row has."""
        column, values = self._columns[key], self._values[key]
        used = np.unique(column[column != ABSENT])
        numbers = np.full(len(values) + 1, ABSENT, dtype=np.int32)  # the last entry stands for an absent label
        numbers[used] = np.arange(len(used))
        kept = [values[number] for number in used.tolist()]
        self._columns[key] = numbers[column]
        self._shared.discard(key)
        self._values = {**self._values, key: kept}
        self._numbers = {**self._numbers, key: {value: number for number, value in enumerate(kept)}}

    def _writable(self, key: str) -> Column:
        if key in self._shared:
            self._columns[key] = self._columns[key].copy()
            self._shared.discard(key)
        return self._columns[key]


class TaintLists:
    """Distinct lists of taints and the list each row has. Mutable; written by its table only."""

    def __init__(self, capacity: int) -> None:
        self.row_list = np.zeros(capacity, dtype=np.int32)
        self._lists: list[tuple[Taint, ...]] = [()]
        self._numbers: dict[tuple[Taint, ...], int] = {(): 0}

    def lists(self) -> Sequence[tuple[Taint, ...]]:
        """Return the distinct taint lists by number; number 0 is the empty list."""
        return self._lists

    def write(self, row: int, taints: tuple[Taint, ...]) -> None:
        """Replace the taints of one row."""
        number = self._numbers.get(taints)
        if number is None:
            number = self._numbers[taints] = len(self._lists)
            self._lists.append(taints)
        self.row_list[row] = number

    def grow(self, capacity: int) -> None:
        """Make room for more rows."""
        self.row_list = np.pad(self.row_list, (0, capacity - len(self.row_list)))

    def fork(self) -> "TaintLists":
        """Return an independent copy that interns in the same books."""
        copy = TaintLists(0)
        copy.row_list = self.row_list.copy()
        copy._lists = self._lists
        copy._numbers = self._numbers
        return copy

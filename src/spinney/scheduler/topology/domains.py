"""The domains of a topology over the nodes of a session.

At each level every node has a domain number, -1 for a node that lacks the label of any level: such a node is in no
domain at all. A domain is identified by the label values from the top down, so racks of equal name in different zones
differ. Sums over domains are kept for the whole cluster and corrected where the usage journal says something changed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spinney.cluster.journal import Rows
from spinney.cluster.resources import Vector
from spinney.cluster.table import NodeTable
from spinney.scheduler.topology.levels import Topology

Numbers = npt.NDArray[np.int64]
"""Domain numbers, or counts."""


@dataclass(frozen=True, eq=False)
class Level:
    """One level: its domains by number, and which rows are in each."""

    key: str
    names: list[str]
    """Dot-joined label values from the top down, by domain number; numbers follow the order of these names."""
    of_row: Numbers
    """Domain number by row, -1 for none."""
    parent: Numbers
    """The domain of the level above that each domain is in; 0 at the coarsest level."""
    rows: Rows
    """Rows sorted by domain, in name order inside each."""
    starts: Numbers
    """Where each domain begins in ``rows``, and where the last ends."""

    def __len__(self) -> int:
        return len(self.names)

    def members(self, domain: int) -> Rows:
        """Return the rows of a domain, in name order."""
        return self.rows[self.starts[domain] : self.starts[domain + 1]]


class Domains:
    """The domains of one topology. Immutable as to who is where; sums are cached and follow the usage journal."""

    def __init__(self, topology: Topology, table: NodeTable) -> None:
        self.topology = topology
        self._table = table
        ordered = table.rows()
        columns = [table.labels.column(key) for key in topology.levels]
        inside = np.ones(len(ordered), dtype=np.bool_)
        for column in columns:
            inside &= column[ordered] >= 0
        self.rows: Rows = ordered[inside]
        """Rows of the nodes that have every label, in name order."""
        self.inside = np.zeros(table.capacity, dtype=np.bool_)
        self.inside[self.rows] = True
        self.levels = self._build(columns)
        self._free: dict[tuple[int, int], tuple[Numbers, Numbers]] = {}
        self._position = table.usage.position

    def _build(self, columns: Sequence[npt.NDArray[np.int32]]) -> list[Level]:
        levels: list[Level] = []
        above = np.zeros(len(self.rows), dtype=np.int64)
        prefixes = [""]
        for key, column in zip(self.topology.levels, columns, strict=True):
            values = self._table.labels.values(key)
            pairs = np.stack([above, column[self.rows].astype(np.int64)])
            unique, inverse = np.unique(pairs, axis=1, return_inverse=True)
            inverse = inverse.reshape(-1)
            names = [f"{prefixes[up]}{values[value]}" for up, value in unique.T.tolist()]
            order = sorted(range(len(names)), key=names.__getitem__)
            number = np.empty(len(names), dtype=np.int64)
            number[order] = np.arange(len(names))
            domain = number[inverse]
            of_row = np.full(self._table.capacity, -1, dtype=np.int64)
            of_row[self.rows] = domain
            parent = np.empty(len(names), dtype=np.int64)
            parent[number] = unique[0]
            names = [names[each] for each in order]
            starts = np.concatenate([[0], np.cumsum(np.bincount(domain, minlength=len(names)))])
            levels.append(Level(key, names, of_row, parent, self.rows[np.argsort(domain, kind="stable")], starts))
            above, prefixes = domain, [f"{name}." for name in names]
        return levels

    def free(self, level: int, column: int) -> Numbers:
        """Return idle plus releasing of a resource, summed over each domain of a level, for the whole cluster."""
        self._follow()
        known = self._free.get((level, column))
        if known is None:
            by_row = self._free_by_row(column, slice(None))
            of_row = self.levels[level].of_row[self.rows]
            sums = sum_by(of_row, by_row[self.rows], len(self.levels[level]))
            known = self._free[level, column] = (by_row, sums)
        return known[1]

    def _follow(self) -> None:
        usage = self._table.usage
        if usage.position == self._position:
            return
        dirty = usage.since(self._position)
        self._position = usage.position
        if dirty is None:
            self._free.clear()
            return
        dirty = dirty[self.inside[dirty]]
        for (level, column), (by_row, sums) in self._free.items():
            now = self._free_by_row(column, dirty)
            np.add.at(sums, self.levels[level].of_row[dirty], now - by_row[dirty])
            by_row[dirty] = now

    def _free_by_row(self, column: int, rows: Rows | slice) -> Vector:
        if column >= self._table.idle.shape[1]:
            return np.zeros(self._table.capacity, dtype=np.int64)[rows]
        free: Vector = self._table.idle[rows, column] + self._table.releasing[rows, column]
        return free


def sum_by(groups: Numbers, amounts: Vector, size: int) -> Numbers:
    """Return exact sums of ``amounts`` by group number, ``[group]``."""
    sums = np.zeros(size, dtype=np.int64)
    np.add.at(sums, groups, amounts)
    return sums

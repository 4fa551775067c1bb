"""The domains of a topology over the nodes of a session.

At each level every node has a domain number, -1 for a node that lacks the label of any level: such a node is in no
domain at all. A domain is identified by the label values from the top down, so racks of equal name in different zones
differ. Sums over domains are kept for the whole cluster and corrected where the usage journal says something changed.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from spinney.cluster.journal import Rows
from spinney.cluster.resources import Vector
from spinney.cluster.table import NodeTable
from spinney.scheduler.topology.levels import TopologyLevels

Numbers = npt.NDArray[np.int64]
"""Domain numbers, or counts."""

_FEW: Final = 4
"""So many rows are added up one by one."""


class Level(msgspec.Struct, frozen=True, eq=False):
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


class DomainTree:
    """Who is where: the levels of one topology over the nodes of one table. Immutable."""

    def __init__(self, topology: TopologyLevels, table: NodeTable) -> None:
        self.topology = topology
        ordered = table.rows()
        columns = [table.labels.column(key) for key in topology.levels]
        inside = np.ones(len(ordered), dtype=np.bool_)
        for column in columns:
            inside &= column[ordered] >= 0
        self.rows: Rows = ordered[inside]
        """Rows of the nodes that have every label, in name order."""
        self.inside = np.zeros(table.capacity, dtype=np.bool_)
        self.inside[self.rows] = True
        self.levels = self._build(columns, table)

    def _build(self, columns: Sequence[npt.NDArray[np.int32]], table: NodeTable) -> list[Level]:
        levels: list[Level] = []
        above = np.zeros(len(self.rows), dtype=np.int64)
        prefixes = [""]
        for key, column in zip(self.topology.levels, columns, strict=True):
            values = table.labels.values(key)
            paired = above * len(values) + column[self.rows]
            unique, inverse = np.unique(paired, return_inverse=True)
            uppers, own = np.divmod(unique, max(len(values), 1))
            names = [f"{prefixes[up]}{values[value]}" for up, value in zip(uppers.tolist(), own.tolist(), strict=True)]
            order = sorted(range(len(names)), key=names.__getitem__)
            number = np.empty(len(names), dtype=np.int64)
            number[order] = np.arange(len(names))
            domain = number[inverse]
            of_row = np.full(table.capacity, -1, dtype=np.int64)
            of_row[self.rows] = domain
            parent = np.empty(len(names), dtype=np.int64)
            parent[number] = uppers
            names = [names[each] for each in order]
            starts = np.concatenate([[0], np.cumsum(np.bincount(domain, minlength=len(names)))])
            levels.append(Level(key, names, of_row, parent, self.rows[np.argsort(domain, kind="stable")], starts))
            above, prefixes = domain, [f"{name}." for name in names]
        return levels


class DomainTrees:
    """Trees kept from session to session for as long as no node changes. Mutable: a cache."""

    def __init__(self) -> None:
        self._trees: dict[Hashable, tuple[int, int, DomainTree]] = {}

    def tree(self, topology: TopologyLevels, table: NodeTable) -> DomainTree:
        """Return the tree of a topology over the nodes of ``table``."""
        key = (topology.name, topology.levels, tuple(topology.aliases.items()))
        known = self._trees.get(key)
        if known is not None and known[:2] == (table.static.position, table.capacity):
            return known[2]
        tree = DomainTree(topology, table)
        self._trees[key] = (table.static.position, table.capacity, tree)
        return tree


class Domains:
    """The domains of one topology in a session: who is where, and sums that follow the usage journal. Mutable."""

    def __init__(self, tree: DomainTree, table: NodeTable) -> None:
        self.topology = tree.topology
        self.rows = tree.rows
        self.inside = tree.inside
        self.levels = tree.levels
        self.common_depth = self.common(self.rows, len(self.levels) - 1)
        """The deepest level where all nodes are in one domain; -1 if there is none."""
        self._table = table
        self._sums: dict[Hashable, Sums] = {}
        self._span = (-1, -1)
        self._dirty: Rows | None = None

    def common(self, rows: Rows, deepest: int) -> int:
        """Return the deepest level, down to ``deepest``, where all ``rows`` are in one domain; -1 if there is none."""
        found = -1
        for depth in range(deepest + 1):
            of_row = self.levels[depth].of_row[rows]
            if len(of_row) == 0 or (of_row != of_row[0]).any():
                break
            found = depth
        return found

    def free(self, level: int, columns: tuple[int, ...]) -> Numbers:
        """Return idle plus releasing of some resources, summed over each domain, ``[domain, resource]``."""
        return self.sums(columns, lambda rows: self.free_by_row(columns, rows)).of_level(level)

    def sums(self, key: Hashable, amounts: Callable[[Rows], Vector]) -> "Sums":
        """Return sums of ``amounts``, a function of rows that only what is on them changes, over the whole cluster.

        It gives one number per row, or several.
        The sums are kept under ``key`` and corrected where something changed since they were last asked for.
        """
        known = self._sums.get(key)
        position = self._table.usage.position
        dirty = None if known is None or known.position == position else self._dirty_since(known.position)
        if known is None or (dirty is None and known.position != position):
            known = self._sums[key] = Sums(self, amounts, self._table.capacity)
        elif dirty is not None:
            known.correct(dirty)
        known.position = position
        return known

    def free_by_row(self, columns: tuple[int, ...], rows: Rows) -> Numbers:
        """Return idle plus releasing of some resources by row, ``[row, resource]``."""
        return self._table.free_at(np.array(columns, dtype=np.intp), rows).T

    def _dirty_since(self, position: int) -> Rows | None:
        """Return the rows inside that changed after ``position``; ``None`` means: any may have."""
        span = (position, self._table.usage.position)
        if self._span != span:
            dirty = self._table.usage.since(position)
            self._span, self._dirty = span, None if dirty is None else dirty[self.inside[dirty]]
        return self._dirty


class Sums:
    """Amounts by row and their sums by domain of each level. Mutable: corrected where rows change."""

    def __init__(self, domains: Domains, amounts: Callable[[Rows], Vector], capacity: int) -> None:
        self._domains = domains
        self._amounts = amounts
        self._levels: dict[int, Numbers] = {}
        self.position = -1
        """Up to where the usage journal was followed; set by the code that keeps the sums."""
        everywhere = amounts(domains.rows)
        self.by_row = np.zeros((capacity, *everywhere.shape[1:]), dtype=np.int64, order="F")
        self.by_row[domains.rows] = everywhere
        self.total: Numbers = everywhere.sum(axis=0)
        """The sums of the whole cluster."""

    def of_level(self, depth: int) -> Numbers:
        """Return the sums by domain of a level. Not to be written to."""
        known = self._levels.get(depth)
        if known is None:
            level = self._domains.levels[depth]
            rows = self._domains.rows
            known = self._levels[depth] = sum_by(level.of_row[rows], self.by_row[rows], len(level))
        return known

    def correct(self, rows: Rows) -> None:
        """Take in what changed on ``rows``."""
        amounts = self._amounts(rows)
        change = amounts - self.by_row[rows]
        self.by_row[rows] = amounts
        self.total += change.sum(axis=0)
        for depth, sums in self._levels.items():
            _add_by(sums, self._domains.levels[depth].of_row[rows], change)


def sum_by(groups: Numbers, amounts: Vector, size: int) -> Numbers:
    """Return exact sums of ``amounts`` by group number, ``[group]``, or ``[group, resource]``."""
    sums = np.zeros((size, *amounts.shape[1:]), dtype=np.int64, order="F")
    _add_by(sums, groups, amounts)
    return sums


def _add_by(sums: Numbers, groups: Numbers, amounts: Numbers) -> None:
    """Add each of ``amounts`` to the sum of its group."""
    if len(groups) <= _FEW:
        for group, change in zip(groups.tolist(), amounts, strict=True):
            sums[group] += change
        return
    for column in range(amounts.shape[1]):  # many times as fast as all at once
        np.add.at(sums[:, column], groups, amounts[:, column])

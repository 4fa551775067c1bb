"""The node table: every node of the cluster as a row of arrays, and the resource ledger over them.

The ledger has four matrices ``[node, resource]``:

* ``allocatable`` what the node offers;
* ``used`` what tasks on it hold or were promised;
* ``idle`` what is free now;
* ``releasing`` what terminating tasks will give back and nobody was promised yet.

A running task adds to ``used`` and takes from ``idle``; a terminating one does the same and adds to ``releasing``; a
pipelined one adds to ``used`` and takes from ``releasing`` only. So a request *fits now* if it is at most ``idle`` and
*fits after release* if it is at most ``idle + releasing``. All arithmetic is exact: undoing restores every bit.

A row belongs to its node while the node lives and is reused afterwards. Two journals name the rows that changed:
``static`` for what a node is (labels, taints, conditions, capacity), ``usage`` for what is on it. Matrices are stored
column by column, because kernels read a few columns of all rows. They have one column for each of the axis' *width*,
always: only a node that is put can make the axis grow, and the matrices grow with it. :meth:`NodeTable.fork` makes the
private copy a scheduling session works on, with an axis of its own.
"""

from collections.abc import Iterator, Sequence
from enum import Enum, auto
from types import MappingProxyType
from typing import Final

import numpy as np
import numpy.typing as npt

from spinney.api.core import Node
from spinney.api.guarding import guarded
from spinney.api.pod_requests import amounts_of
from spinney.cluster.devices import GPU_COUNT_LABEL, device_columns, whole_number
from spinney.cluster.journal import RowJournal, Rows
from spinney.cluster.labels import LabelColumns, TaintLists
from spinney.cluster.looking import LookedAt
from spinney.cluster.resources import GPU, ResourceAxis, Vector, padded

Matrix = npt.NDArray[np.int64]
"""Amounts ``[node, resource]``."""
Mask = npt.NDArray[np.bool_]
"""One truth per row, ``[node]``."""

_FIRST_CAPACITY: Final = 64

_MATRICES: Final = ("allocatable", "used", "idle", "releasing")


class Holding(Enum):
    """How a task holds what it uses on a node."""

    ACTIVE = auto()
    """Running, or decided: taken from idle."""
    RELEASING = auto()
    """Terminating: still taken from idle, and promised back."""
    PIPELINED = auto()
    """Waiting for something that is terminating: taken from what was promised back."""


class NodeNotInTable(LookupError):
    """A node name that the table does not hold."""

    def __init__(self, name: str) -> None:
        super().__init__(f"node {name!r} is not in the cluster: it was deleted, or its watch event has not arrived yet")
        self.name = name


class NodeTable:
    """Nodes as rows of arrays. Mutable; all mutation goes through its methods, which keep the journals.

    Public arrays cover ``capacity`` rows; rows that are not ``alive`` hold no node and never match anything.
    """

    alive: Mask
    unschedulable: Mask
    ready: Mask
    memory_pressure: Mask
    disk_pressure: Mask
    pid_pressure: Mask
    network_unavailable: Mask
    gpu_memory_known: Mask
    mig_enabled: Mask
    mig_single: Mask
    mig_mixed: Mask
    generation: Vector
    gpu_memory: Vector
    gpu_count: Vector
    _rank: Vector

    def __init__(self, axis: ResourceAxis | None = None) -> None:
        self.axis = axis if axis is not None else ResourceAxis()
        self.static = RowJournal()
        self.usage = RowJournal()
        self.labels = LabelColumns(_FIRST_CAPACITY)
        self.taints = TaintLists(_FIRST_CAPACITY)
        self.names: list[str] = [""] * _FIRST_CAPACITY
        self.nodes: list[Node | None] = [None] * _FIRST_CAPACITY
        for flag in _FLAGS:
            setattr(self, flag, np.zeros(_FIRST_CAPACITY, dtype=np.bool_))
        for number in _NUMBERS:
            setattr(self, number, np.zeros(_FIRST_CAPACITY, dtype=np.int64))
        self.allocatable = _matrix(_FIRST_CAPACITY, self.axis.width)
        self.used = self.allocatable.copy(order="F")
        self.idle = self.allocatable.copy(order="F")
        self.releasing = self.allocatable.copy(order="F")
        self._rows: dict[str, int] = {}
        self._lent: dict[str, tuple[Node, Node]] = {}
        """Nodes that were looked at in views of this table or of a fork, by name, each with what is shown of it."""
        self._free: list[int] = list(range(_FIRST_CAPACITY - 1, -1, -1))
        self._rank_is_stale = False
        self.may_release = False
        """Whether anything on this copy may be terminating, or promised to pods that wait for that."""
        self.tries = 0
        """How often something was booked that readers of the journal must not notice."""

    # -- reading -----------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    @property
    def capacity(self) -> int:
        """Return the number of rows of every array."""
        return len(self.names)

    @property
    def rank(self) -> Vector:
        """Return each row's place in the order of node names, ``[node]``: ties are broken by it, ascending."""
        if self._rank_is_stale:
            order = sorted(self._rows)
            self._rank[:] = len(order)
            self._rank[[self._rows[name] for name in order]] = np.arange(len(order))
            self._rank_is_stale = False
        return self._rank

    def row(self, name: str) -> int:
        """Return the row of a node; raises :class:`NodeNotInTable`."""
        row = self._rows.get(name)
        if row is None:
            raise NodeNotInTable(name)
        return row

    def find(self, name: str) -> int | None:
        """Return the row of a node if it is there."""
        return self._rows.get(name)

    def mask(self, rows: Rows | Sequence[int]) -> Mask:
        """Return a mask of some rows, ``[node]``."""
        mask = np.zeros(self.capacity, dtype=np.bool_)
        mask[rows] = True
        return mask

    def rows(self) -> Rows:
        """Return the rows of all nodes in the order of their names."""
        alive = np.flatnonzero(self.alive)
        return alive[np.argsort(self.rank[alive], kind="stable")]

    def idle_at(self, columns: Rows, rows: Rows) -> Matrix:
        """Return what is free now of some resources on some rows, ``[resource, node]``."""
        return self.idle.T[columns[:, None], rows]

    def free_at(self, columns: Rows, rows: Rows) -> Matrix:
        """Return what is free once everything terminating is gone, ``[resource, node]``."""
        free = self.idle_at(columns, rows)
        if self.may_release:
            free += self.releasing.T[columns[:, None], rows]
        return free

    # -- nodes coming, changing and going ----------------------------------------------------------------------------

    def put(self, node: Node) -> int:
        """Add a node, or replace what is known about it; return its row. What is on it stays."""
        name = node.metadata.name
        row = self._rows.get(name)
        if row is None:
            row = self._take_row(name)
        elif self.nodes[row] == node:
            return row
        amounts = amounts_of(node.status.allocatable)
        self.axis.offer(amounts)
        self._widen()
        offered = self.axis.vector({name: amounts[name] for name in amounts if self.axis.find(name) is not None})
        self.idle[row] += offered - self.allocatable[row]
        self.allocatable[row] = offered
        self.nodes[row] = node
        self.labels.write(row, node.metadata.labels)
        self.taints.write(row, node.spec.taints)
        self.unschedulable[row] = bool(node.spec.unschedulable)
        conditions = {condition.type: condition.status for condition in node.status.conditions}
        # A node that reports no Ready condition is a simulated or hand-written one, not a broken one.
        self.ready[row] = conditions.get("Ready", "True") == "True"
        self.memory_pressure[row] = conditions.get("MemoryPressure") == "True"
        self.disk_pressure[row] = conditions.get("DiskPressure") == "True"
        self.pid_pressure[row] = conditions.get("PIDPressure") == "True"
        self.network_unavailable[row] = conditions.get("NetworkUnavailable") == "True"
        for column, value in device_columns(node.metadata.labels).items():
            getattr(self, column)[row] = value
        count = whole_number(node.metadata.labels.get(GPU_COUNT_LABEL))
        self.gpu_count[row] = count if count is not None else offered[GPU]
        self._dirty(row)
        return row

    def remove(self, name: str) -> int:
        """Forget a node and everything on it; return the row it had."""
        row = self.row(name)
        del self._rows[name]
        self._lent.pop(name, None)
        for matrix in _MATRICES:
            getattr(self, matrix)[row] = 0
        for flag in _FLAGS:
            getattr(self, flag)[row] = False
        self.labels.write(row, {})
        self.taints.write(row, ())
        self.names[row] = ""
        self.nodes[row] = None
        self._free.append(row)
        self._rank_is_stale = True
        self._dirty(row)
        return row

    def split_off(self, name: str, column: int) -> int | None:
        """Count what ``column`` has in a column of its own too, from now on apart; ``None`` if there is none left."""
        self.axis.offer([name])
        self._widen()
        own = self.axis.find(name)
        if own is not None:
            for matrix in _MATRICES:
                getattr(self, matrix)[:, own] = getattr(self, matrix)[:, column]
        return own

    # -- the ledger --------------------------------------------------------------------------------------------------

    def add(self, row: int, holding: Holding, amounts: Vector) -> None:
        """Book ``amounts`` on one row as ``holding`` says."""
        # Rows are views, so that adding in place is one operation each: this runs for every event of a pod.
        amounts = padded(amounts, self.used.shape[1])
        used = self.used[row]
        used += amounts
        if holding is not Holding.PIPELINED:
            idle = self.idle[row]
            idle -= amounts
        if holding is not Holding.ACTIVE:
            self.may_release = True
            releasing = self.releasing[row]
            if holding is Holding.RELEASING:
                releasing += amounts
            else:
                releasing -= amounts
        self.usage.mark_row(row, only_takes=holding is Holding.ACTIVE)

    def subtract(self, row: int, holding: Holding, amounts: Vector) -> None:
        """Undo :meth:`add`."""
        amounts = padded(amounts, self.used.shape[1])
        used = self.used[row]
        used -= amounts
        if holding is not Holding.PIPELINED:
            idle = self.idle[row]
            idle += amounts
        if holding is not Holding.ACTIVE:
            self.may_release = True
            releasing = self.releasing[row]
            if holding is Holding.RELEASING:
                releasing -= amounts
            else:
                releasing += amounts
        self.usage.mark_row(row)

    def add_many(self, rows: Rows, counts: Vector, amounts: Vector) -> None:
        """Book ``counts[i]`` tasks of ``amounts`` on each of the distinct ``rows``; negative counts take away."""
        self.try_many(rows, counts, amounts)
        self.usage.mark(rows, only_takes=bool(counts.min(initial=0) >= 0))

    def try_many(self, rows: Rows, counts: Vector, amounts: Vector) -> None:
        """Book as :meth:`add_many` does, to see what it would be like: readers of the journal must not notice."""
        self.tries += 1
        total = counts[:, None] * padded(amounts, self.used.shape[1])
        self.used[rows] += total
        self.idle[rows] -= total

    # -- copies ------------------------------------------------------------------------------------------------------

    def fork(self) -> "NodeTable":
        """Return an independent copy: arrays are copied, label columns shared until one side writes."""
        copy = NodeTable(self.axis.fork())
        copy.static = self.static.fork()
        copy.usage = RowJournal(self.usage.position)
        copy.labels = self.labels.fork()
        copy.taints = self.taints.fork()
        copy.names = list(self.names)
        copy.nodes = list(self.nodes)
        self.rank  # noqa: B018 - brings the order of names up to date once for all copies
        for matrix in _MATRICES:
            setattr(copy, matrix, getattr(self, matrix).copy(order="F"))
        for column in (*_FLAGS, *_NUMBERS):
            setattr(copy, column, getattr(self, column).copy())
        copy._rows = dict(self._rows)
        copy._lent = self._lent
        copy._free = list(self._free)
        copy._rank_is_stale = False
        copy.may_release = bool(copy.releasing.any())
        return copy

    def read_only(self) -> "NodeTable":
        """Return this table to look at: it follows what happens here, but cannot be written to.

        The labels of its nodes, and what else of them is a mapping, can neither.
        """
        self.rank  # noqa: B018 - brought up to date here, for it cannot be there
        view = object.__new__(NodeTable)
        view.__dict__.update(self.__dict__)
        view.may_release = True  # it follows what happens here
        view.__dict__["names"] = LookedAt(self.names)
        view.__dict__["nodes"] = LookedAt(self.nodes, self._shown)
        view.__dict__["_rows"] = MappingProxyType(self._rows)
        view.__dict__["_free"] = ()
        for name in (*_MATRICES, *_FLAGS, *_NUMBERS):
            array = getattr(self, name).view()
            array.setflags(write=False)
            view.__dict__[name] = array
        return view

    def _shown(self, node: Node | None) -> Node | None:
        """Return a node as views show it: every pod may ask about every node, so it is made once."""
        if node is None:
            return None
        name = node.metadata.name
        known = self._lent.get(name)
        if known is None or known[0] is not node:
            known = self._lent[name] = (node, guarded(node))
        return known[1]

    def restrict(self, mask: Mask) -> None:
        """Leave only the rows of ``mask`` alive: in this copy the other nodes do not exist."""
        self.alive &= mask
        for row in np.flatnonzero(~self.alive).tolist():
            self._rows.pop(self.names[row], None)
        self._rank_is_stale = True

    # -- storage -----------------------------------------------------------------------------------------------------

    def _take_row(self, name: str) -> int:
        if not self._free:
            self._grow()
        row = self._free.pop()
        self._rows[name] = row
        self.names[row] = name
        self.alive[row] = True
        self._rank_is_stale = True
        return row

    def _dirty(self, row: int) -> None:
        self.generation[row] += 1
        self.static.mark_row(row)
        self.usage.mark_row(row)

    def _grow(self) -> None:
        old = self.capacity
        capacity = 2 * old
        for matrix in _MATRICES:
            setattr(self, matrix, _enlarged(getattr(self, matrix), capacity, self.axis.width))
        for column in (*_FLAGS, *_NUMBERS):
            setattr(self, column, np.pad(getattr(self, column), (0, capacity - old)))
        self.labels.grow(capacity)
        self.taints.grow(capacity)
        self.names.extend([""] * old)
        self.nodes.extend([None] * old)
        self._free = list(range(capacity - 1, old - 1, -1))

    def _widen(self) -> None:
        if self.used.shape[1] < self.axis.width:
            for matrix in _MATRICES:
                setattr(self, matrix, _enlarged(getattr(self, matrix), self.capacity, self.axis.width))


_FLAGS: Final = tuple(name for name, kind in NodeTable.__annotations__.items() if kind == Mask)
_NUMBERS: Final = tuple(name for name, kind in NodeTable.__annotations__.items() if kind == Vector)


def _matrix(rows: int, columns: int) -> Matrix:
    return np.zeros((rows, columns), dtype=np.int64, order="F")


def _enlarged(matrix: Matrix, rows: int, columns: int) -> Matrix:
    wider = _matrix(rows, columns)
    wider[: matrix.shape[0], : matrix.shape[1]] = matrix
    return wider

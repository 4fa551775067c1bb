"""What is free, and what is stranded, on nodes, followed as pods are placed: in columns, and as numbers of a node."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spinney.cluster.devices import DEVICE
from spinney.cluster.journal import Rows
from spinney.cluster.resources import GPU
from spinney.scheduler.framework.nodes import Nodes
from spinney.scheduler.plugins.packing.workload import DemandMix, stranded_gpus, stranded_on

WHOLE, STRANDED, GPUS, OTHERS = range(4)
"""Rows of :data:`Columns`; from the last on there is one for each resource that is asked for with GPUs."""

Columns = npt.NDArray[np.float64]
"""Whole free GPUs; stranded GPUs; free GPUs with the parts of shared ones; others that are free: ``[what, node]``."""
Facts = Sequence[float]
"""The same of one node: ``[what]``."""


class FreeAmounts:
    """What is free on the nodes of a session beside what a workload asks for. Mutable: it follows their journal."""

    def __init__(self, nodes: Nodes, workload: DemandMix) -> None:
        self._nodes = nodes
        self._table = nodes.table
        self._workload = workload
        self._resources: list[int] = workload.columns.tolist()
        self._columns: Columns | None = None
        self._position = -1
        self._facts: dict[int, Facts] = {}
        self._last: tuple[Rows, tuple[int, int], Columns] | None = None
        """Rows that were asked about last, when that was, and what was free there."""
        self._last_few: tuple[Sequence[int], tuple[int, int], Sequence[Facts]] | None = None
        """The same of a few rows, which nobody changes while they are asked about."""
        self._parts: Columns | None = None
        self._parts_of: dict[int, Facts] = {}

    def take_up(self, workload: DemandMix) -> bool:
        """Look at nodes as another workload has it, if that asks for the same resources beside GPUs.

        What is free is what it was then, and only what is stranded is found anew.
        """
        if not np.array_equal(workload.columns, self._workload.columns):
            return False
        self._workload, self._last, self._last_few = workload, None, None
        if self._columns is not None and workload.needs_company:
            columns, rows = self._follow(), self._nodes.all.rows
            columns[STRANDED, rows] = stranded_gpus(workload, columns[GPUS].take(rows), columns[OTHERS:].take(rows, 1))
            self._facts.clear()
        return True

    def at(self, rows: Rows) -> Columns:
        """Return what is free and stranded on some rows; the scores of a pod ask about the same rows in turn."""
        known, moment = self._last, (self._table.usage.position, self._table.tries)
        if known is None or known[0] is not rows or known[1] != moment:
            # The journal does not tell of pods that are there to try only.
            tried = self._nodes.visitors is not None
            free = self._look_at(rows) if tried else self._follow().take(rows, axis=1)
            known = self._last = (rows, moment, free)
        return known[2]

    def of_few(self, rows: Sequence[int]) -> Sequence[Facts]:
        """Return the same of a few rows as numbers, ``[node][what]``; the scores of a pod ask about them in turn."""
        known, moment = self._last_few, (self._table.usage.position, self._table.tries)
        if known is None or known[0] is not rows or known[1] != moment:
            known = self._last_few = (rows, moment, self._found_of_few(rows))
        return known[2]

    def _found_of_few(self, rows: Sequence[int]) -> Sequence[Facts]:
        if self._nodes.visitors is not None:
            found: list[Facts] = self._look_at(np.array(rows, dtype=np.intp)).T.tolist()
            return found
        columns, facts = self._follow(), self._facts
        for row in rows:
            if row not in facts:
                facts[row] = columns[:, row].tolist()
        return [facts[row] for row in rows]

    def strands_none(self) -> bool:
        """Tell whether no GPU of any node is stranded."""
        return not np.count_nonzero(self._follow()[STRANDED])

    def parts_of_nodes(self) -> Columns:
        """Return what part of a node one GPU is, and one of each resource that is asked for with GPUs."""
        if self._parts is None:
            self._parts = 1.0 / np.maximum(self._table.allocatable[:, [GPU, *self._resources]].T, 1)
        return self._parts

    def parts_of_few(self, rows: Sequence[int]) -> list[Facts]:
        """Return the same of a few rows as numbers, ``[node][what]``."""
        parts, known = self.parts_of_nodes(), self._parts_of
        for row in rows:
            if row not in known:
                known[row] = parts[:, row].tolist()
        return [known[row] for row in rows]

    # -- following ---------------------------------------------------------------------------------------------------

    def _follow(self) -> Columns:
        """Return what is free and stranded by node, brought up to date where something changed."""
        usage = self._table.usage
        if self._columns is None:
            self._columns = np.zeros((OTHERS + len(self._resources), self._table.capacity))
            self._write(self._columns, self._nodes.all.rows)
        elif self._position != usage.position:
            few = usage.few_since(self._position, 1)
            if few is not None:
                self._write_row(self._columns, *few)
            else:
                dirty = usage.since(self._position)
                self._write(self._columns, self._nodes.all.rows if dirty is None else dirty)
        return self._columns

    def _write(self, columns: Columns, rows: Rows) -> None:
        """Look at some nodes again."""
        columns[:, rows] = self._look_at(rows)
        if self._facts:
            for row in rows.tolist():
                self._facts.pop(row, None)
        self._position = self._table.usage.position

    def _look_at(self, rows: Rows) -> Columns:
        """Return what is free and stranded on some rows at this moment."""
        table, workload = self._table, self._workload
        found: Columns = np.zeros((OTHERS + len(workload.columns), len(rows)))
        parts = np.add.reduce(np.maximum(self._nodes.ledger.shared.kept_later(rows), 0))
        found[WHOLE] = np.maximum(table.idle[:, GPU][rows] + table.releasing[:, GPU][rows], 0)
        found[GPUS] = found[WHOLE] + parts / DEVICE
        if workload.needs_company:
            for place, column in enumerate(workload.columns, OTHERS):
                found[place] = table.idle[:, column][rows] + table.releasing[:, column][rows]
            found[STRANDED] = stranded_gpus(workload, found[GPUS], found[OTHERS:])
        return found

    def _write_row(self, columns: Columns, row: int) -> None:
        """Look at one node again, as :meth:`_write` does: that is what mostly changed."""
        table = self._table
        idle, releasing = table.idle.item, table.releasing.item
        parts = sum([free for free in self._nodes.ledger.shared.kept_later_on(row) if free > 0])
        whole = max(idle(row, GPU) + releasing(row, GPU), 0)
        gpus, stranded, others = whole + parts / DEVICE, 0.0, []
        if self._resources:
            others = [idle(row, each) + releasing(row, each) for each in self._resources]
            stranded = stranded_on(self._workload, gpus, *others)
        columns[:, row] = self._facts[row] = (whole, stranded, gpus, *others)
        self._position = table.usage.position

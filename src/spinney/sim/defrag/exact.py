"""The cheapest plan there is, as a mixed-integer programme for HiGHS (https://highs.dev).

A pod that may be moved goes to exactly one node; the wanted pods are spread over the nodes of one region; no node holds
more than it has. A gang that loses more pods than it can spare starts anew as a whole. Pods that start anew are counted
first, GPU hours after them.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

import numpy as np

from spinney.cluster.pods import PodKey
from spinney.gangs.tree import GangKey
from spinney.sim.defrag.problem import Problem, Solution

LARGEST: Final = 20_000
"""Of so many choices (pods times nodes) at most a plan is exact unless that is asked for."""
SECONDS: Final = 60.0
"""How long the solver may take."""


def is_installed() -> bool:
    """Tell whether the solver is there."""
    return find_spec("highspy") is not None


def size(problem: Problem) -> int:
    """Return how many choices a plan has."""
    return sum(int(pod.usable.sum()) for gang in problem.gangs for pod in gang.pods)


def exact(problem: Problem) -> Solution | None:
    """Return the cheapest plan, ``None`` if there is none; its ``exact`` is false if time ran out before the proof."""
    return _Programme(problem).solve()


class _Programme:
    """A programme being written down. Mutable."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._highs: Any = import_module("highspy").Highs()
        self._highs.setOptionValue("output_flag", False)
        self._columns = 0
        self._loads: dict[tuple[int, int], list[tuple[int, float]]] = {}
        """What each column takes, by row and resource."""

    def solve(self) -> Solution | None:
        problem = self._problem
        moves = self._write_moves()
        places = self._write_demands()
        room = problem.free.copy()
        for gang in problem.gangs:
            for pod in gang.pods:
                room[pod.row] += pod.request  # it counts as gone: its staying is a column of its own
        for (row, resource), terms in self._loads.items():
            self._row(terms, None, float(room[row, resource]), scale=max(weight for _, weight in terms))
        self._highs.setOptionValue("time_limit", SECONDS)
        self._highs.setOptionValue("mip_rel_gap", 0.0)
        self._highs.run()
        status = str(self._highs.getModelStatus())
        values = np.array(self._highs.getSolution().col_value)
        if not len(values) or ("Optimal" not in status and "TimeLimit" not in status):
            return None
        chosen: dict[GangKey, dict[PodKey, int]] = {}
        for column, key, moved, row in moves:
            if values[column] > 0.5:
                chosen.setdefault(key, {})[moved] = row
        rows = [row for column, row in places for _ in range(round(values[column]))]
        if not rows:
            return None
        return Solution(chosen, tuple(rows), exact="Optimal" in status)

    def _write_moves(self) -> list[tuple[int, GangKey, PodKey, int]]:
        """Write down that each pod stays or goes to one other node, and what that costs."""
        problem = self._problem
        heavy = 1.0 + sum(gang.gpu_hours for gang in problem.gangs)
        found = []
        for gang in problem.gangs:
            hours = gang.gpu_hours / len(gang.pods)
            each = heavy + hours
            whole = self._column(each * len(gang.pods))
            leaving: list[tuple[int, float]] = []
            for pod in gang.pods:
                stays = self._column(0.0)
                self._load(stays, pod.row, pod.request)
                options = [(stays, 1.0)]
                for row in np.flatnonzero(pod.usable).tolist():
                    if row == pod.row:
                        continue
                    column = self._column(0.0)
                    self._load(column, row, pod.request)
                    options.append((column, 1.0))
                    leaving.append((column, 1.0))
                    found.append((column, gang.key, pod.key, row))
                self._row(options, 1.0, 1.0)
            # All pods start anew at the price of all, or as many go as can be spared, each at its own price.
            spared = self._column(each, most=float(gang.spare))
            self._row([*leaving, (whole, -float(len(gang.pods))), (spared, -1.0)], None, 0.0)
        return found

    def _write_demands(self) -> list[tuple[int, int]]:
        """Write down that the wanted pods are in one region."""
        found = []
        chosen = [self._column(0.0) for _ in self._problem.regions]
        self._row([(column, 1.0) for column in chosen], 1.0, 1.0)
        for demand in self._problem.demands:
            counts: list[tuple[int, float]] = []
            for region, rows in zip(chosen, self._problem.regions, strict=True):
                here = []
                for row in rows.tolist():
                    if demand.usable is not None and not demand.usable[row]:
                        continue
                    column = self._column(0.0, most=1.0 if demand.one_per_node else float(demand.count))
                    self._load(column, row, demand.request)
                    here.append((column, 1.0))
                    found.append((column, row))
                self._row([*here, (region, -float(demand.count))], None, 0.0)
                counts += here
            self._row(counts, float(demand.count), float(demand.count))
        return found

    def _column(self, cost: float, *, most: float = 1.0) -> int:
        """Add a whole number from 0 to ``most``, at a cost for each."""
        self._highs.addVar(0.0, most)
        self._highs.changeColCost(self._columns, cost)
        self._highs.changeColIntegrality(self._columns, import_module("highspy").HighsVarType.kInteger)
        self._columns += 1
        return self._columns - 1

    def _load(self, column: int, row: int, request: np.ndarray) -> None:
        for resource in np.flatnonzero(request).tolist():
            self._loads.setdefault((row, resource), []).append((column, float(request[resource])))

    def _row(self, terms: list[tuple[int, float]], low: float | None, high: float, *, scale: float = 1.0) -> None:
        infinity = import_module("highspy").kHighsInf
        self._highs.addRow(
            -infinity if low is None else low / scale,
            high / scale,
            len(terms),
            np.array([column for column, _ in terms], dtype=np.int32),
            np.array([weight / scale for _, weight in terms]),
        )

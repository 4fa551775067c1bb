"""A plan for large clusters: the cheapest nodes are cleared, and their pods go to the tightest place elsewhere.

Nodes are chosen one by one, each by what it costs to make room on it given those chosen before. If a gang that has to
go finds no other place, that gang stays, and everything is chosen anew.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np

from spinney.cluster.fitting import Demand
from spinney.cluster.journal import Rows
from spinney.cluster.pods import PodKey
from spinney.cluster.resources import CPU, GPU
from spinney.cluster.table import Matrix
from spinney.gangs.tree import GangKey
from spinney.sim.defrag.problem import MovableGang, MovablePod, MovePrice, Problem, Solution, price, price_of

_TRIES: Final = 50
"""For each region; after each failure another gang stays."""
_Choice = tuple[MovableGang, MovablePod]


def greedy(problem: Problem) -> Solution | None:
    """Return a plan that is mostly near the cheapest; ``None`` if none was found."""
    best: tuple[MovePrice, Solution] | None = None
    for rows in problem.regions:
        staying: set[GangKey] = set()
        for _ in range(_TRIES):
            found, stuck = _Attempt(problem, staying).solve(rows)
            if found is not None:
                cost = price(problem, found)
                if best is None or cost < best[0]:
                    best = (cost, found)
            if stuck is None:
                break
            staying.add(stuck)
    return best[1] if best is not None else None


class _Attempt:
    """One choice of nodes. Mutable."""

    def __init__(self, problem: Problem, staying: set[GangKey]) -> None:
        self._problem = problem
        self._room: Matrix = problem.free.copy()
        self._gone: dict[GangKey, list[MovablePod]] = {}
        self._on: dict[int, list[_Choice]] = {}
        for gang in problem.gangs:
            if gang.key not in staying:
                for pod in gang.pods:
                    self._on.setdefault(pod.row, []).append((gang, pod))

    def solve(self, rows: Rows) -> tuple[Solution | None, GangKey | None]:
        """Return a plan, or who stands in its way."""
        used: list[int] = []
        for demand in self._problem.demands:
            for _ in range(demand.count):
                row = self._clear(rows, demand, used)
                if row is None:
                    return None, None
                self._room[row] -= demand.request
                used.append(row)
        moves: dict[GangKey, dict[PodKey, int]] = {}
        leaving = [(key, pod) for key, pods in self._gone.items() for pod in pods]
        for key, pod in sorted(leaving, key=lambda each: (-int(each[1].request[GPU]), -int(each[1].request[CPU]))):
            row = self._tightest(pod)
            if row is None:
                return None, key
            self._room[row] -= pod.request
            if row != pod.row:
                moves.setdefault(key, {})[pod.key] = row
        return Solution(moves, tuple(used)), None

    def _clear(self, rows: Rows, demand: Demand, used: Iterable[int]) -> int | None:
        """Make room for one pod on the node where that is cheapest; return the node."""
        best: tuple[MovePrice, int, list[_Choice]] | None = None
        taken = set(used)
        for row in rows.tolist():
            if (demand.usable is not None and not demand.usable[row]) or (demand.one_per_node and row in taken):
                continue
            found = self._cheapest(row, demand)
            if found is not None and (best is None or (found[0], row) < best[:2]):
                best = (found[0], row, found[1])
                if found[0].restarts == 0:
                    break
        if best is None:
            return None
        for gang, pod in best[2]:
            self._gone.setdefault(gang.key, []).append(pod)
            self._on[pod.row].remove((gang, pod))
            self._room[pod.row] += pod.request
        return best[1]

    def _cheapest(self, row: int, demand: Demand) -> tuple[MovePrice, list[_Choice]] | None:
        """Return whom to move from a node so that one pod fits: the cheapest for what they hold, and none in vain."""
        missing = demand.request - self._room[row]
        if (missing <= 0).all():
            return MovePrice(0, 0.0), []
        choices = sorted(self._on.get(row, ()), key=lambda each: self._worth(each, missing))
        taken: list[_Choice] = []
        freed = np.zeros_like(missing)
        for choice in choices:
            if (freed >= missing).all():
                break
            if (choice[1].request * (missing > freed)).any():
                taken.append(choice)
                freed = freed + choice[1].request
        if not (freed >= missing).all():
            return None
        for choice in sorted(taken, key=lambda each: -self._marginal(each).restarts):
            if (freed - choice[1].request >= missing).all():
                taken.remove(choice)
                freed = freed - choice[1].request
        return MovePrice(
            sum(self._marginal(each).restarts for each in taken), sum(self._marginal(each).gpu_hours for each in taken)
        ), taken

    def _worth(self, choice: _Choice, missing: Matrix) -> tuple[float, float]:
        cost, wanted = self._marginal(choice), missing > 0
        held = float((choice[1].request[wanted] / missing[wanted]).sum())
        return cost.restarts / max(held, 1e-9), cost.gpu_hours / max(held, 1e-9)

    def _marginal(self, choice: _Choice) -> MovePrice:
        """Return what it costs to move one more pod of a gang."""
        gang, _ = choice
        moved = len(self._gone.get(gang.key, ()))
        before, after = price_of(gang, moved), price_of(gang, moved + 1)
        return MovePrice(after.restarts - before.restarts, after.gpu_hours - before.gpu_hours)

    def _tightest(self, pod: MovablePod) -> int | None:
        """Return the node that has least left once it takes the pod."""
        fits = pod.usable & (self._room >= pod.request).all(axis=1)
        rows = np.flatnonzero(fits)
        if not len(rows):
            return None
        column = GPU if pod.request[GPU] else CPU
        return int(rows[np.argmin(self._room[rows, column])])

"""A plan as people and programmes read it: which gangs are moved where, in which order, and what each costs."""

from typing import Literal

import msgspec

from spinney.cluster.resources import GPU
from spinney.sim.defrag.exact import LARGEST, exact, is_installed, size
from spinney.sim.defrag.greedy import greedy
from spinney.sim.defrag.problem import Problem, Solution, price_of

Solver = Literal["auto", "exact", "greedy"]


class PodMove(msgspec.Struct, frozen=True):
    """A pod that goes from one node to another; to the same where its gang starts anew as a whole."""

    pod: str
    uid: str
    source: str
    target: str
    gpus: int


class GangMove(msgspec.Struct, frozen=True, kw_only=True):
    """A gang that is moved, in part or as a whole, and what that costs."""

    gang: str
    pods: tuple[PodMove, ...]
    gpu_hours: float
    """Work since its start that is done again, unless it keeps checkpoints."""


class DefragPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What to move so that room is free."""

    wanted: str
    nodes: tuple[str, ...]
    """Where the room is then."""
    moves: tuple[GangMove, ...]
    solver: str
    """``exact``: nothing cheaper exists; ``greedy``: something cheaper may."""
    restarts: int
    gpu_hours: float


class NoPlan(Exception):
    """There is no room to be made; the text says why."""


def make_plan(problem: Problem, wanted: str, solver: Solver = "auto") -> DefragPlan:
    """Return the cheapest plan that is found; raises :class:`NoPlan`."""
    solution = _solved(problem, solver)
    if solution is None:
        held = f"; not moved: {'; '.join(problem.fixed[:5])}" if problem.fixed else ""
        raise NoPlan(f"no moves make room for {wanted}: {len(problem.gangs)} gangs may be moved{held}")
    moves = sorted(_moves(problem, solution), key=lambda move: (len(move.pods), move.gpu_hours, move.gang))
    return DefragPlan(
        wanted=wanted,
        nodes=tuple(sorted({problem.names[row] for row in solution.rows})),
        moves=tuple(moves),
        solver="exact" if solution.exact else "greedy",
        restarts=sum(len(move.pods) for move in moves),
        gpu_hours=sum(move.gpu_hours for move in moves),
    )


def _solved(problem: Problem, solver: Solver) -> Solution | None:
    if solver == "greedy" or (solver == "auto" and (not is_installed() or size(problem) > LARGEST)):
        return greedy(problem)
    return exact(problem)


def _moves(problem: Problem, solution: Solution) -> list[GangMove]:
    found = []
    for gang in problem.gangs:
        targets = solution.moves.get(gang.key)
        if not targets:
            continue
        cost = price_of(gang, len(targets))
        whole = len(targets) > gang.spare
        pods = tuple(
            PodMove(
                str(pod.key),
                pod.uid,
                problem.names[pod.row],
                problem.names[targets.get(pod.key, pod.row)],
                int(pod.request[GPU]),
            )
            for pod in gang.pods
            if whole or pod.key in targets
        )
        found.append(GangMove(gang=str(gang.key), pods=pods, gpu_hours=round(cost.gpu_hours, 2)))
    return found

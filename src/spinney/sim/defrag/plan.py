"""A plan as people and programmes read it: which gangs are moved where, in which order, and what each costs.

It is carried out gang by gang, within disruption budgets. The nodes that are to be free are cordoned first, so that
evicted pods go elsewhere, and opened again at the end. The next gang follows when the one before has what it needs
again (:mod:`spinney.binding.moving`) and none of its owners' pods waits for a node. If a gang does not come back,
nothing more is moved.
"""

from collections.abc import Iterable
from functools import partial
from typing import Final, Literal

import msgspec

from spinney.api.core import NODE
from spinney.binding.moving import GangMover
from spinney.cluster.pods import PodKey, PodRecord
from spinney.cluster.resources import GPU
from spinney.cluster.statuses import WAITING
from spinney.explain.amounts import counted
from spinney.sim.defrag.exact import LARGEST, exact, is_installed, size
from spinney.sim.defrag.greedy import greedy
from spinney.sim.defrag.problem import NoPlan, Problem, Solution, left_aside, price_of

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


def make_plan(problem: Problem, wanted: str, solver: Solver = "auto") -> DefragPlan:
    """Return the cheapest plan that is found; raises :class:`NoPlan`."""
    roughly = solver == "greedy" or (solver == "auto" and (not is_installed() or size(problem) > LARGEST))
    solution = greedy(problem) if roughly else exact(problem)
    if solution is None:
        held = f"; not moved: {'; '.join(problem.fixed[:5])}" if problem.fixed else ""
        may = f"{counted(len(problem.gangs), 'gang')} may be moved"
        kept_off = "".join(f"; {each}" for each in problem.refused)
        raise NoPlan(f"no moves make room for {wanted}: {may}{held}{kept_off}{left_aside(problem.cordoned)}")
    moves = sorted(_moves(problem, solution), key=lambda move: (len(move.pods), move.gpu_hours, move.gang))
    return DefragPlan(
        wanted=wanted,
        nodes=tuple(sorted({problem.names[row] for row in solution.rows})),
        moves=tuple(moves),
        solver="exact" if solution.exact else "greedy",
        restarts=sum(len(move.pods) for move in moves),
        gpu_hours=sum(move.gpu_hours for move in moves),
    )


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
        found.append(GangMove(gang=str(gang.key), pods=pods, gpu_hours=cost.gpu_hours))
    return found


PATIENCE: Final = 300.0
"""Seconds for one gang to find another place."""


async def carry_out(plan: DefragPlan, mover: GangMover) -> None:
    """Move what the plan moves; raises :class:`~spinney.binding.moving.MoveStopped`."""
    client, table = mover.client, mover.cluster.table
    rows = {name: table.find(name) for name in plan.nodes}
    cordoned = [name for name, row in rows.items() if row is not None and not table.unschedulable[row]]
    try:
        for name in cordoned:
            await client.patch(NODE, name, {"spec": {"unschedulable": True}})
        for move in plan.moves:
            for leaving in mover.leaving(_records(mover, move)):
                await mover.move(leaving, partial(_remaining, mover, leaving.pods))
    finally:
        for name in cordoned:
            await client.patch(NODE, name, {"spec": {"unschedulable": None}})


def _records(mover: GangMover, move: GangMove) -> list[PodRecord]:
    """Return the pods of a move that are still there."""
    found = [(mover.cluster.pod(PodKey(*pod.pod.split("/"))), pod.uid) for pod in move.pods]
    return [record for record, uid in found if record is not None and record.uid == uid]


def _remaining(mover: GangMover, pods: Iterable[PodRecord]) -> list[PodKey]:
    """Return evicted pods that are still there, and pods of their owners that wait for a node."""
    uids = {record.uid for record in pods}
    owners = {owner for record in pods for owner in _owners(record)}
    return [
        record.key
        for record in mover.cluster.pods()
        if record.uid in uids or (record.status in WAITING and not owners.isdisjoint(_owners(record)))
    ]


def _owners(record: PodRecord) -> set[str]:
    return {owner.uid for owner in record.pod.metadata.owner_references}

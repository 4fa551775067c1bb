"""What a plan has to solve: what is free, who may be moved and where to, and the room that is wanted."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from spinney.cluster.fitting import Demand
from spinney.cluster.journal import Rows
from spinney.cluster.pods import PodKey, PodRecord
from spinney.cluster.resources import GPU, Vector
from spinney.cluster.statuses import ACTIVE_ALLOCATED, PodStatus
from spinney.cluster.table import Mask, Matrix
from spinney.explain.amounts import counted, first_few
from spinney.gangs.tree import GangKey
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo
from spinney.scheduler.plugins.keeping import demands_of, regions

_HOUR: Final = 3600.0
_NAMED: Final = 5
_SETTLED: Final = ACTIVE_ALLOCATED - {PodStatus.PIPELINED}


class NoPlan(Exception):
    """There is no room to be made; the text says why."""


@dataclass(frozen=True, slots=True, eq=False)
class MovablePod:
    """A pod that may go elsewhere: ``request[resource]``, on nodes where ``usable[node]``."""

    key: PodKey
    uid: str
    row: int
    request: Vector
    usable: Mask


@dataclass(frozen=True, slots=True, eq=False)
class MovableGang:
    """A gang whose pods may be moved."""

    key: GangKey
    pods: tuple[MovablePod, ...]
    spare: int
    """So many of its pods may go and the others run on; beyond that, and where it is 0, all of them start anew."""
    gpu_hours: float
    """What is lost if all of its pods start anew."""


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Room that is wanted, and what stands in its way. Rows are positions in ``names`` and ``free[node, resource]``."""

    names: tuple[str, ...]
    free: Matrix
    gangs: tuple[MovableGang, ...]
    demands: tuple[Demand, ...]
    regions: tuple[Rows, ...]
    """The demands must be met in one of these."""
    fixed: tuple[str, ...] = ()
    """Why gangs may not be moved, for people."""
    cordoned: tuple[str, ...] = ()
    """Nodes with GPUs that take nothing until someone opens them."""
    refused: tuple[str, ...] = ()
    """Which plugins keep who waits off how many nodes, whoever leaves them, for people."""


@dataclass(frozen=True, slots=True)
class Solution:
    """Where pods go, by gang, and which rows the wanted room is on."""

    moves: Mapping[GangKey, Mapping[PodKey, int]]
    rows: tuple[int, ...]
    exact: bool = False


@dataclass(frozen=True, slots=True, order=True)
class MovePrice:
    """What a plan costs: pods that start anew, then the GPU hours they had done."""

    restarts: int
    gpu_hours: float


def price_of(gang: MovableGang, moved: int) -> MovePrice:
    """Return what moving so many pods of a gang costs."""
    if not moved:
        return MovePrice(0, 0.0)
    restarts = moved if moved <= gang.spare else len(gang.pods)
    return MovePrice(restarts, gang.gpu_hours * restarts / len(gang.pods))


def price(problem: Problem, solution: Solution) -> MovePrice:
    gangs = {gang.key: gang for gang in problem.gangs}
    each = [price_of(gangs[key], len(moves)) for key, moves in solution.moves.items()]
    return MovePrice(sum(one.restarts for one in each), sum(one.gpu_hours for one in each))


def room_for(session: Session, job: PodGroupInfo) -> Problem:
    """Return the problem of making room for a job that waits, where its topology and plugins allow it.

    Raises :class:`NoPlan` if no node will do, whoever leaves it.
    """
    tasks = job.tasks_to_allocate()
    refused: dict[str, None] = {}

    def usable(task: PodInfo) -> Mask:
        blocked = session.ask.pre_predicates.refusal(task)
        if blocked is not None:
            raise NoPlan(f"no room would help {job.key}: {blocked}")
        mask = session.ask.node_rules.suits(task).copy()
        (rows,) = mask.nonzero()
        for plugin, nodes in session.ask.node_rules.lasting_refusals(task, rows).items():
            why = session.ask.node_rules.reason_of(plugin, task, session.nodes.info(int(rows[nodes][0])))
            refused[f"plugin {plugin} refuses {counted(int(nodes.sum()), 'node')}{why}"] = None
            mask[rows[nodes]] = False
        return mask

    demands = demands_of(session, tasks, usable)
    return replace(_problem(session, demands, list(regions(session, job)), job), refused=tuple(refused))


def whole_nodes(session: Session, count: int, level: str | None) -> Problem:
    """Return the problem of freeing all GPUs of so many nodes, which share a value of the label ``level`` if given.

    Nodes are whole with as many GPUs as any has; those that are cordoned or not ready have room for nobody. Raises
    :class:`NoPlan` where there are too few of them.
    """
    table = session.nodes.table
    rows = session.nodes.all.rows
    rows = rows[table.ready[rows] & ~table.unschedulable[rows]]
    most = int(table.allocatable[rows, GPU].max(initial=0))
    request = np.zeros(table.idle.shape[1], dtype=np.int64)
    request[GPU] = most
    sets: list[Rows] = [rows]
    if level is not None:
        values = table.labels.column(level)[rows]
        sets = [rows[values == value] for value in np.unique(values[values >= 0])]
    largest = max((int((table.allocatable[each, GPU] == most).sum()) for each in sets), default=0)
    if not most:
        raise NoPlan(f"no node that is ready has GPUs{left_aside(_cordoned(session))}")
    if count > largest:
        together = f" sharing {level}" if level is not None else ""
        raise NoPlan(
            f"{counted(count, 'whole node')} cannot be had: {counted(largest, 'node')} of {most} GPUs{together}"
            f"{left_aside(_cordoned(session))}"
        )
    return _problem(session, [Demand(request, count, one_per_node=True)], sets, None)


def _problem(
    session: Session, demands: Sequence[Demand], sets: Sequence[Rows], beneficiary: PodGroupInfo | None
) -> Problem:
    table = session.nodes.table
    free = table.idle + table.releasing
    gangs, fixed = [], []
    for key in dict.fromkeys(key for queue in session.snapshot.gangs.started.values() for key in queue):
        job = session.job(key)
        if beneficiary is not None and key == beneficiary.key:
            continue
        running = [task for task in job.tasks if task.status in _SETTLED]
        obstacle = _obstacle(session, job, running) if running else None
        if obstacle is not None:
            fixed.append(f"{key}: {obstacle}")
        elif running:
            gangs.append(_movable(session, job, running))
    names = [""] * table.capacity
    for row in session.nodes.all.rows.tolist():
        names[row] = session.nodes.info(row).name
    return Problem(tuple(names), free, tuple(gangs), tuple(demands), tuple(sets), tuple(fixed), _cordoned(session))


def _cordoned(session: Session) -> tuple[str, ...]:
    """Return the nodes with GPUs that are cordoned."""
    table = session.nodes.table
    rows = session.nodes.all.rows
    shut = rows[table.unschedulable[rows] & (table.allocatable[rows, GPU] > 0)]
    return tuple(sorted(session.nodes.info(row).name for row in shut.tolist()))


def left_aside(cordoned: Sequence[str]) -> str:
    """Return what to say of cordoned nodes where no plan is found: one that was killed leaves them so."""
    if not cordoned:
        return ""
    nodes = f"{counted(len(cordoned), 'node')} {'is' if len(cordoned) == 1 else 'are'} cordoned"
    return f"; {nodes}, which 'kubectl uncordon' opens: {first_few(cordoned, _NAMED)}"


def _movable(session: Session, job: PodGroupInfo, running: Sequence[PodInfo]) -> MovableGang:
    width = session.nodes.table.idle.shape[1]
    pods = tuple(
        MovablePod(task.key, task.uid, task.row, task.request.vector(width), _usable(session, task)) for task in running
    )
    placed = job.count_in(ACTIVE_ALLOCATED)
    spare = min((placed(each) - each.min_member for each in job.gang.pod_sets.values()), default=0)
    if len(job.gang.pod_sets) > 1 or job.gang.disrupted_whole:
        spare = 0
    since = job.last_start
    hours = (session.now - since).total_seconds() / _HOUR if since is not None else 0.0
    gpus = sum(task.request.gpus for task in running)
    return MovableGang(job.key, pods, max(spare, 0), max(hours, 0.0) * gpus)


def _usable(session: Session, task: PodInfo) -> Mask:
    """Return the nodes, ``[node]``, that every rule lets a running pod go to as things are; its own is one of them."""
    node_rules = session.ask.node_rules
    usable = node_rules.suits(task).copy()
    (rows,) = usable.nonzero()
    usable[rows] = node_rules.still_takes(task, rows, node_rules.rules(task))
    usable[task.row] = True
    return usable


def _obstacle(session: Session, job: PodGroupInfo, running: Iterable[PodInfo]) -> str | None:
    """Return why a gang stays where it is."""
    if not job.is_preemptible_job(session.is_inference_preemptible()):
        return "may not be preempted"
    records: list[PodRecord] = [task.record for task in running]
    for task in running:
        owners = {owner.kind for owner in task.record.pod.metadata.owner_references}
        constraints = task.request.constraints
        if not owners:
            return "nobody would make its pods anew"
        if owners & {"DaemonSet", "Node"}:
            return "belongs to its node"
        if task.request.share is not None:
            return "shares devices"
        if constraints.looks_at_pods or constraints.volumes or constraints.claims:
            return "has rules about other pods, volumes or device claims"
    return session.snapshot.budgets.refusal(records)

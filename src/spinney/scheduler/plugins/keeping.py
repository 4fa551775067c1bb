"""Keeping nodes for gangs that wait: in one domain where they require that, those that need to empty least.

What is kept is found anew in every cycle from the cluster alone.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import numpy as np
import numpy.typing as npt

from spinney.cluster.classes import RequestClass
from spinney.cluster.fitting import Demand, first_of
from spinney.cluster.journal import Rows
from spinney.cluster.resources import CPU, GPU
from spinney.cluster.table import Mask
from spinney.gangs.tree import required_of_all
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.nodes import NodeInfo
from spinney.scheduler.framework.plugin import Plugin
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import NOWHERE, PodInfo, by_request

_BEGINNING: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class KeptNodes:
    """Nodes that are kept for a job, and in words why."""

    job: PodGroupInfo
    why: str
    rows: frozenset[int]


class NodeKeeper(Plugin):
    """Keeps jobs that give way off the nodes that others need; which those are is found when a job is first tried."""

    def on_session_open(self, session: Session) -> None:
        self._session = session
        self._kept: Sequence[KeptNodes] | None = None
        session.add_predicate_fn(self._leaves_room, per_pod=False, applies_to=self._must_look)

    def served(self) -> Iterable[tuple[PodGroupInfo, str]]:
        """Return the jobs that nodes are kept for, in order, and in words why."""
        raise NotImplementedError

    def gives_way(self, job: PodGroupInfo, other: PodGroupInfo) -> bool:
        """Tell whether a job is kept off the nodes of another."""
        raise NotImplementedError

    @property
    def kept(self) -> Sequence[KeptNodes]:
        """Return what is kept in this session."""
        if self._kept is None:
            self._kept = ()  # the nodes are asked about while they are being chosen
            self._kept = tuple(self._choose())
        return self._kept

    def _choose(self) -> Iterator[KeptNodes]:
        taken: set[int] = set()
        for job, why in self.served():
            rows = needing_least(self._session, job, taken)
            if rows is not None:
                taken.update(rows)
                yield KeptNodes(job, why, frozenset(rows))

    def _must_look(self, task: PodInfo) -> bool:
        return any(self.gives_way(task.job, each.job) for each in self.kept)

    def _leaves_room(self, task: PodInfo, job: PodGroupInfo, node: NodeInfo) -> str | None:
        for each in self.kept:
            if node.row in each.rows and self.gives_way(job, each.job):
                return f"kept for {each.job.key}, {each.why}"
        return None


def waiting_since(job: PodGroupInfo) -> datetime | None:
    """Return since when the job has waited: it was created, or thrown out."""
    moments = [moment for moment in (job.created, job.gang.last_eviction) if moment is not None]
    return max(moments, default=None)


def turn(job: PodGroupInfo) -> tuple[int, datetime, str]:
    """Return the place of a job in the order in which room is kept: priority, then age."""
    return (-job.priority, waiting_since(job) or _BEGINNING, job.uid)


def needing_least(
    session: Session, job: PodGroupInfo, taken: Collection[int], cost: npt.NDArray[np.float64] | None = None
) -> list[int] | None:
    """Return the rows that hold the job once they are empty, those that need to empty least; ``None``: none do.

    Rows that are ``taken`` are left out. ``cost`` says what emptying each row costs, if it is not what is in use there.
    """
    demands = demands_of(session, job.tasks_to_allocate())
    column = scarce(demands)
    table = session.nodes.table
    busy = (
        cost if cost is not None else table.allocatable[:, column] - table.idle[:, column] - table.releasing[:, column]
    )
    free = np.ones(table.capacity, dtype=np.bool_)
    free[list(taken)] = False
    best: tuple[float, list[int]] | None = None
    for rows in regions(session, job):
        candidates = rows[free[rows]]
        ordered = candidates[np.argsort(busy[candidates], kind="stable")]
        chosen = _first_to_hold(session, ordered, demands)
        if chosen is None:
            continue
        if best is None or float(busy[chosen].sum()) < best[0]:
            best = (float(busy[chosen].sum()), chosen)
    return best[1] if best is not None else None


def _first_to_hold(session: Session, rows: Rows, demands: Sequence[Demand]) -> list[int] | None:
    """Return those of ``rows`` that hold demands once they are empty, the first of them; ``None``: they do not."""
    for few in (rows[: sum(demand.count for demand in demands)], rows):
        held = held_by(_empty(session, few), few, demands)
        if held is not None:
            chosen: list[int] = few[held.any(axis=1)].tolist()
            return chosen
    return None


def scarce(demands: Sequence[Demand]) -> int:
    """Return the resource by which nodes are compared: GPUs where any are asked for."""
    return GPU if any(demand.request[GPU] for demand in demands) else CPU


def demands_of(
    session: Session, tasks: Sequence[PodInfo], usable: Callable[[PodInfo], Mask] | None = None
) -> list[Demand]:
    """Return what ``tasks`` ask for, the largest first, each kind on the nodes it may ever go to, or on those given."""
    width, suits = session.nodes.table.idle.shape[1], usable or session.ask.node_rules.suits

    def largest(request: RequestClass) -> tuple[int, int, int]:
        return -request.gpus, -int(request.requests[CPU]), request.number

    kinds = by_request(tasks)
    return [
        Demand(request.vector(width), len(kinds[request]), suits(kinds[request][0]))
        for request in sorted(kinds, key=largest)
    ]


def held_by(room: npt.NDArray[np.int64], rows: Rows, demands: Sequence[Demand]) -> npt.NDArray[np.int64] | None:
    """Return what demands take of ``room[row, resource]``, the first rows first; ``None``: it does not hold them."""
    left = room.copy()
    for demand in demands:
        here = first_of(demand.at(rows).per_node(left), demand.count)
        if int(here.sum()) < demand.count:
            return None
        left -= here[:, None] * demand.request
    return room - left


def regions(session: Session, job: PodGroupInfo) -> Iterator[Rows]:
    """Return the sets of rows of which the job must use one: the domains of the level it requires, or all."""
    constraint = required_of_all(job.root)
    if constraint is None:
        yield session.nodes.all.rows
        return
    found = session.topologies.required(constraint)
    if found is None:
        return
    topology, depth = found
    level = session.snapshot.domain_trees.tree(topology, session.nodes.table).levels[depth]
    occupied = {int(level.of_row[task.row]) for task in job.tasks if task.row != NOWHERE}
    for domain in sorted(occupied) or range(len(level)):
        yield level.members(domain)


def _empty(session: Session, rows: Rows) -> npt.NDArray[np.int64]:
    """Return what the rows offer beside pods that stay, of daemon sets and other schedulers: ``[row, resource]``."""
    nodes, serves = session.nodes, session.snapshot.serves
    room = nodes.table.allocatable[rows].copy()
    for position, row in enumerate(rows.tolist()):
        for record in nodes.pods.of_row(row).values():
            if not serves(record) or any(owner.kind == "DaemonSet" for owner in record.pod.metadata.owner_references):
                room[position, record.request.columns] -= record.request.amounts
    return room

"""reservation: a gang that has waited long enough is no longer overtaken on the nodes it needs. Opt-in.

Small jobs fit into every gap, so on a busy cluster a large gang may never see enough free at once. This plugin finds,
in each queue, the gang that has waited longest, and once it has waited ``afterSeconds`` keeps the nodes for it that
need to empty least: they hold the gang when what runs there has ended, and they lie in one domain where the gang
requires that. Jobs that come later in the same order of priority and age may use every other node.

What is kept is found anew in every cycle from the cluster alone. Nothing new runs on kept nodes, and other nodes are
chosen only when they are emptier, so what the gang still waits for never grows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated

import msgspec
import numpy as np
import numpy.typing as npt

from spinney.api.durations import format_duration
from spinney.cluster.classes import RequestClass
from spinney.cluster.fitting import Demand, first_of
from spinney.cluster.journal import Rows
from spinney.cluster.resources import CPU, GPU
from spinney.gangs.tree import required_of_all
from spinney.scheduler.framework.arguments import read_arguments
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.nodes import NodeInfo
from spinney.scheduler.framework.plugin import Plugin
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import NOWHERE, PodInfo, by_request

_BEGINNING = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Reservation:
    """Nodes that are kept for a gang."""

    job: PodGroupInfo
    waited: timedelta
    rows: frozenset[int]

    def precedes(self, job: PodGroupInfo) -> bool:
        """Tell whether ``job`` comes after the one the nodes are kept for."""
        return job is not self.job and _turn(self.job) < _turn(job)


class Patience(msgspec.Struct, frozen=True, rename="camel"):
    """How long a gang waits before nodes are kept for it, and of how many pods it has to be."""

    after_seconds: Annotated[float, msgspec.Meta(ge=0, le=1e9)] = 300.0
    min_pods: Annotated[int, msgspec.Meta(ge=1)] = 2


class ReservationPlugin(Plugin):
    """Keeps later jobs off the nodes that a starving gang needs."""

    name = "reservation"
    arguments_type = Patience

    def on_session_open(self, session: Session) -> None:
        """Register the predicate; what to keep is found when a job is first tried."""
        self._session = session
        chosen = read_arguments(Patience, self.arguments)
        self._after, self._min_pods = timedelta(seconds=chosen.after_seconds), chosen.min_pods
        self._reservations: tuple[Reservation, ...] | None = None
        session.add_predicate_fn(self._leaves_room, per_pod=False, applies_to=self._comes_later)

    @property
    def reservations(self) -> tuple[Reservation, ...]:
        """Return what is kept in this session, for the gang that has waited longest first."""
        if self._reservations is None:
            self._reservations = ()  # the nodes are asked about while they are being chosen
            self._reservations = tuple(self._reserve())
        return self._reservations

    def _comes_later(self, task: PodInfo) -> bool:
        return any(kept.precedes(task.job) for kept in self.reservations)

    def _leaves_room(self, task: PodInfo, job: PodGroupInfo, node: NodeInfo) -> str | None:
        del task
        for kept in self.reservations:
            if node.row in kept.rows and kept.precedes(job):
                return f"kept for {kept.job.key}, which has waited {format_duration(kept.waited)}"
        return None

    # -- whom nodes are kept for -------------------------------------------------------------------------------------

    def _reserve(self) -> Iterator[Reservation]:
        taken: set[int] = set()
        for job, waited in self._starving():
            rows = self._rows_for(job, taken)
            if rows is not None:
                taken.update(rows)
                yield Reservation(job, waited, frozenset(rows))

    def _starving(self) -> list[tuple[PodGroupInfo, timedelta]]:
        """Return, per queue, the gang that has waited longest and too long, in the order of jobs."""
        longest: dict[str, tuple[PodGroupInfo, timedelta]] = {}
        for job in self._session.pending_jobs():
            waited = self._session.now - (_waiting_since(job) or self._session.now)
            known = longest.get(job.queue)
            if waited >= self._after and (known is None or waited > known[1]) and self._may_run(job):
                longest[job.queue] = (job, waited)
        return sorted(longest.values(), key=lambda found: _turn(found[0]))

    def _may_run(self, job: PodGroupInfo) -> bool:
        """Tell whether only room keeps the job from running; one that shares devices finds its gaps itself."""
        if job.is_gang_satisfied or not job.is_ready or job.gang.problem:
            return False
        tasks = job.tasks_to_allocate()
        if len(tasks) < self._min_pods or any(task.request.share is not None for task in tasks):
            return False
        return self._session.ask.is_job_over_capacity(job, tasks).ok

    # -- which nodes -------------------------------------------------------------------------------------------------

    def _rows_for(self, job: PodGroupInfo, taken: set[int]) -> list[int] | None:
        """Return the rows that hold the job once they are empty, those that need to empty least; ``None``: none do."""
        demands = self._demands(job.tasks_to_allocate())
        gpus = any(demand.request[GPU] for demand in demands)
        column = GPU if gpus else CPU
        table = self._session.nodes.table
        busy = table.allocatable[:, column] - table.idle[:, column] - table.releasing[:, column]
        free = np.ones(table.capacity, dtype=np.bool_)
        free[list(taken)] = False
        best: tuple[int, list[int]] | None = None
        for rows in self._regions(job):
            candidates = rows[free[rows]]
            ordered = candidates[np.argsort(busy[candidates], kind="stable")]
            chosen = self._fill(ordered, demands)
            if chosen is not None and (best is None or int(busy[chosen].sum()) < best[0]):
                best = (int(busy[chosen].sum()), chosen)
        return best[1] if best is not None else None

    def _demands(self, tasks: Sequence[PodInfo]) -> list[Demand]:
        """Return what ``tasks`` ask for, the largest first, each kind on the nodes it may ever go to."""
        width, suits = self._session.nodes.table.idle.shape[1], self._session.ask.node_rules.suits

        def largest(request: RequestClass) -> tuple[int, int, int]:
            return -request.gpus, -int(request.requests[CPU]), request.number

        kinds = by_request(tasks)
        return [
            Demand(request.vector(width), len(kinds[request]), suits(kinds[request][0]))
            for request in sorted(kinds, key=largest)
        ]

    def _fill(self, rows: Rows, demands: Sequence[Demand]) -> list[int] | None:
        """Return the first of ``rows`` that hold the demands when nothing but what never ends is on them."""
        room = self._room(rows)
        used = np.zeros(len(rows), dtype=np.bool_)
        for demand in demands:
            here = first_of(demand.at(rows).per_node(room), demand.count)
            if int(here.sum()) < demand.count:
                return None
            room -= here[:, None] * demand.request
            used |= here > 0
        chosen: list[int] = rows[used].tolist()
        return chosen

    def _room(self, rows: Rows) -> npt.NDArray[np.int64]:
        """Return what the rows offer beside the pods of daemon sets, ``[row, resource]``."""
        nodes = self._session.nodes
        room = nodes.table.allocatable[rows].copy()
        for position, row in enumerate(rows.tolist()):
            for record in nodes.pods.of_row(row).values():
                if any(owner.kind == "DaemonSet" for owner in record.pod.metadata.owner_references):
                    room[position, record.request.columns] -= record.request.amounts
        return room

    def _regions(self, job: PodGroupInfo) -> Iterator[Rows]:
        """Return the sets of rows of which the job must use one: the domains of the level it requires, or all."""
        session = self._session
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


def _waiting_since(job: PodGroupInfo) -> datetime | None:
    """Return since when the job has waited: it was created, or thrown out."""
    moments = [moment for moment in (job.created, job.gang.last_eviction) if moment is not None]
    return max(moments, default=None)


def _turn(job: PodGroupInfo) -> tuple[int, datetime, str]:
    """Return the place of a job in the order reservations follow: priority, then age."""
    return (-job.priority, _waiting_since(job) or _BEGINNING, job.uid)

"""reservation: a gang that has waited long enough is no longer overtaken on the nodes it needs. Opt-in.

Small jobs fit into every gap, so on a busy cluster a large gang may never see enough free at once. This plugin finds,
in each queue, the gang that has waited longest, and once it has waited ``afterSeconds`` keeps the nodes for it that
need to empty least: they hold the gang when what runs there has ended, and they lie in one domain where the gang
requires that. Jobs that come later in the same order of priority and age may use every other node.

What is kept is found anew in every cycle from the cluster alone. Nothing new runs on kept nodes, and other nodes are
chosen only when they are emptier, so what the gang still waits for never grows.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated

import msgspec

from spinney.api.durations import format_duration
from spinney.scheduler.framework.arguments import read_arguments
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.nodes import NodeInfo
from spinney.scheduler.framework.plugin import Plugin
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo
from spinney.scheduler.plugins.keeping import needing_least, turn, waiting_since


class NodeReservation(msgspec.Struct, frozen=True):
    """Nodes that are kept for a gang."""

    job: PodGroupInfo
    waited: timedelta
    rows: frozenset[int]

    def precedes(self, job: PodGroupInfo) -> bool:
        """Tell whether ``job`` comes after the one the nodes are kept for."""
        return job is not self.job and turn(self.job) < turn(job)


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
        self._reservations: tuple[NodeReservation, ...] | None = None
        session.add_predicate_fn(self._leaves_room, per_pod=False, applies_to=self._comes_later)

    @property
    def reservations(self) -> tuple[NodeReservation, ...]:
        """Return what is kept in this session, for the gang that has waited longest first."""
        if self._reservations is None:
            self._reservations = ()  # the nodes are asked about while they are being chosen
            self._reservations = tuple(self._reserve())
        return self._reservations

    def _comes_later(self, task: PodInfo) -> bool:
        return any(kept.precedes(task.job) for kept in self.reservations)

    def _leaves_room(self, task: PodInfo, job: PodGroupInfo, node: NodeInfo) -> str | None:
        for kept in self.reservations:
            if node.row in kept.rows and kept.precedes(job):
                return f"kept for {kept.job.key}, which has waited {format_duration(kept.waited)}"
        return None

    # -- whom nodes are kept for -------------------------------------------------------------------------------------

    def _reserve(self) -> Iterator[NodeReservation]:
        taken: set[int] = set()
        for job, waited in self._starving():
            rows = needing_least(self._session, job, taken)
            if rows is not None:
                taken.update(rows)
                yield NodeReservation(job, waited, frozenset(rows))

    def _starving(self) -> list[tuple[PodGroupInfo, timedelta]]:
        """Return, per queue, the gang that has waited longest and too long, in the order of jobs."""
        longest: dict[str, tuple[PodGroupInfo, timedelta]] = {}
        for job in self._session.pending_jobs():
            waited = self._session.now - (waiting_since(job) or self._session.now)
            known = longest.get(job.queue)
            if waited >= self._after and (known is None or waited > known[1]) and self._may_run(job):
                longest[job.queue] = (job, waited)
        return sorted(longest.values(), key=lambda found: turn(found[0]))

    def _may_run(self, job: PodGroupInfo) -> bool:
        """Tell whether only room keeps the job from running; one that shares devices finds its gaps itself."""
        if job.gang_satisfied or not job.ready or job.gang.problem:
            return False
        tasks = job.tasks_to_allocate()
        if len(tasks) < self._min_pods or any(task.request.share is not None for task in tasks):
            return False
        return self._session.ask.is_job_over_capacity(job, tasks).ok

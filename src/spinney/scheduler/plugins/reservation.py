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
from spinney.extensions.arguments import read_arguments
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.session import Session
from spinney.scheduler.plugins.keeping import NodeKeeper, turn, waiting_since


class Patience(msgspec.Struct, frozen=True, rename="camel"):
    """How long a gang waits before nodes are kept for it, and of how many pods it has to be."""

    after_seconds: Annotated[float, msgspec.Meta(ge=0, le=1e9)] = 300.0
    min_pods: Annotated[int, msgspec.Meta(ge=1)] = 2


class ReservationPlugin(NodeKeeper):
    """Keeps later jobs off the nodes that a starving gang needs."""

    name = "reservation"
    contradicts = frozenset({"backfill"})
    arguments_type = Patience

    def on_session_open(self, session: Session) -> None:
        super().on_session_open(session)
        self._patience = read_arguments(Patience, self.arguments)

    def gives_way(self, job: PodGroupInfo, other: PodGroupInfo) -> bool:
        """Jobs that come later, by priority and age, do."""
        return job is not other and turn(other) < turn(job)

    def served(self) -> Iterator[tuple[PodGroupInfo, str]]:
        """Return, per queue, the gang that has waited longest and too long, in the order of jobs."""
        longest: dict[str, tuple[PodGroupInfo, timedelta]] = {}
        for job in self._session.pending_jobs():
            waited = self._session.now - (waiting_since(job) or self._session.now)
            known = longest.get(job.queue)
            long_enough = waited.total_seconds() >= self._patience.after_seconds
            if long_enough and (known is None or waited > known[1]) and self._may_run(job):
                longest[job.queue] = (job, waited)
        for job, waited in sorted(longest.values(), key=lambda found: turn(found[0])):
            yield job, f"which has waited {format_duration(waited)}"

    def _may_run(self, job: PodGroupInfo) -> bool:
        """Tell whether only room keeps the job from running; one that shares devices finds its gaps itself."""
        if job.gang_satisfied or not job.ready or job.gang.problem:
            return False
        tasks = job.tasks_to_allocate()
        if len(tasks) < self._patience.min_pods or any(task.request.share is not None for task in tasks):
            return False
        return self._session.ask.is_job_over_capacity(job, tasks).ok

"""Consolidation: make room for a job by moving others, so that nobody loses anything but the time to restart.

The job must be preemptible itself, and what is free in sum must be enough for it; a scenario may happen only if every
pod it evicts was promised another place. At most so many jobs as configured are moved for one.
"""

from collections.abc import Iterable
from typing import Final

from spinney.cluster.statuses import ACTIVE_ALLOCATED
from spinney.scheduler.fairshare.amounts import ZERO, Amounts
from spinney.scheduler.framework.events import Scenario
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.moves import workload_of
from spinney.scheduler.framework.session import Session
from spinney.scheduler.victims.moving import NO_OTHER_PLACE
from spinney.scheduler.victims.pool import VictimPool
from spinney.scheduler.victims.rule import VictimRule

MOVED_BEFORE: Final = "nobody is moved again for a job, or for one that was moved for it"


class Consolidation(VictimRule):
    """The consolidation action."""

    name = "consolidation"
    reported_as = "consolidate"
    by_priority = False
    loses_nothing = True

    def may_search(self, session: Session, job: PodGroupInfo) -> bool:
        """Only preemptible jobs have others moved."""
        return job.is_preemptible_job(session.is_inference_preemptible())

    def queues(self, session: Session, job: PodGroupInfo, pool: VictimPool) -> Iterable[str]:
        """Jobs of all queues may be moved."""
        return pool.queues

    def admits(self, session: Session, job: PodGroupInfo, victim: PodGroupInfo) -> bool:
        """Any job may be moved, but not the one itself, and none that was just promised a place, if such are spared.

        Nor again for the same job: :mod:`spinney.scheduler.framework.moves` has the rules.
        """
        if victim is job or (session.config.spare_just_bound and victim.has_pipelined):
            return False
        if not session.moves:
            return True
        until = session.moves.bar(job.uid, workload_of(job), workload_of(victim))
        if until is not None:
            session.wake_at(until)
        return until is None

    def remark(self, session: Session, job: PodGroupInfo) -> str | None:
        """Jobs that were moved before may be passed over."""
        return MOVED_BEFORE if session.moves.limit(job.uid, workload_of(job)) else None

    def refusal(self, session: Session, scenario: Scenario) -> str | None:
        """Every job must have found a place."""
        lost = any(task.status not in ACTIVE_ALLOCATED for tasks in scenario.victims.values() for task in tasks)
        return NO_OTHER_PLACE if lost else None

    def most_lost(self, session: Session, job: PodGroupInfo, pool: VictimPool) -> Amounts | None:
        """Nothing is lost."""
        return ZERO

    def message(self, session: Session, job: PodGroupInfo, queue: str) -> str:
        """Name the job that others are moved for."""
        return f"moved to another place to make room for job {job.key} of queue {job.queue}"

    def most_jobs(self, session: Session) -> int:
        """As configured."""
        return session.config.max_consolidation_preemptees

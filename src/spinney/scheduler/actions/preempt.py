"""Preempt: a job takes from jobs of lower priority in its own queue, and from those that plugins have give way.

These are of its own queue or of others, and of no higher priority.
A job that cannot be preempted itself must stay within the quota of its queue and all queues above it.
"""

from collections.abc import Iterable

from spinney.scheduler.framework.events import Scenario
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.session import Session
from spinney.scheduler.victims.pool import VictimPool
from spinney.scheduler.victims.rule import VictimRule


class Preempt(VictimRule):
    """The preempt action."""

    name = "preempt"
    reported_as = "preempt"

    def may_search(self, session: Session, job: PodGroupInfo) -> bool:
        """A job that cannot be preempted must stay within quota."""
        return session.ask.is_non_preemptible_job_over_queue_quota(job, job.tasks_to_allocate()).ok

    def queues(self, session: Session, job: PodGroupInfo, pool: VictimPool) -> Iterable[str]:
        """The job's own queue gives; others do where a plugin has their jobs give way."""
        across = any(hook.across_queues for hook in session.hooks.gives_way)
        return [queue for queue in pool.queues if across or queue == job.queue]

    def admits(self, session: Session, job: PodGroupInfo, victim: PodGroupInfo) -> bool:
        """The victim must be of lower priority in the same queue, or give way, and plugins must let it be taken."""
        if not self.may_admit(session, job, victim.priority) or not session.ask.is_victim("preempt", job, victim):
            return False
        if victim.priority < job.priority and victim.queue == job.queue:
            return True
        return victim is not job and session.ask.gives_way(job, victim)

    def protection(self, session: Session, job: PodGroupInfo, victim: PodGroupInfo) -> str | None:
        """A plugin may keep what is of lower priority."""
        lower = victim.priority < job.priority and victim.queue == job.queue
        return session.ask.protection("preempt", job, victim) if lower else None

    def may_admit(self, session: Session, job: PodGroupInfo, priority: int) -> bool:
        """The victim must be of lower priority; of the same where a plugin has jobs give way."""
        return priority < job.priority or (priority == job.priority and bool(session.hooks.gives_way))

    def refusal(self, session: Session, scenario: Scenario) -> str | None:
        """Plugins must agree with the outcome."""
        return session.ask.scenario_refusal("preempt", scenario)

    def message(self, session: Session, job: PodGroupInfo, queue: str) -> str:
        """Name the job of higher priority, or of another queue."""
        if queue != job.queue:
            return f"gives way to job {job.key} of queue {job.queue}"
        return f"preempted by job {job.key} of priority {job.priority} in queue {queue}"

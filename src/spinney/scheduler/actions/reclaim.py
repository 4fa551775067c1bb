"""Reclaim: a job takes from other queues what its own queue is entitled to.

Whether the job's queue may take, whose queue may give, and whether the outcome is just, is for plugins to say
(``proportion``, ``minruntime``); without one that knows queues nothing is reclaimed.
"""

from collections.abc import Iterable

from spinney.scheduler.fairshare.amounts import Amounts
from spinney.scheduler.framework.events import Scenario
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.session import Session
from spinney.scheduler.victims.pool import VictimPool
from spinney.scheduler.victims.rule import VictimRule


class Reclaim(VictimRule):
    """The reclaim action."""

    name = "reclaim"
    reported_as = "reclaim"

    def may_search(self, session: Session, job: PodGroupInfo) -> bool:
        """The job's queue must be entitled to what the job asks for."""
        return session.ask.can_reclaim_resources(job)

    def queues(self, session: Session, job: PodGroupInfo, pool: VictimPool) -> Iterable[str]:
        """All other queues may give."""
        return [queue for queue in pool.queues if queue != job.queue]

    def admits(self, session: Session, job: PodGroupInfo, victim: PodGroupInfo) -> bool:
        """Plugins must let the victim be taken."""
        return session.ask.is_victim("reclaim", job, victim)

    def protection(self, session: Session, job: PodGroupInfo, victim: PodGroupInfo) -> str | None:
        """A plugin may keep what another queue holds."""
        return session.ask.protection("reclaim", job, victim)

    def refusal(self, session: Session, scenario: Scenario) -> str | None:
        """Plugins must find the outcome just."""
        return session.ask.scenario_refusal("reclaim", scenario)

    def most_lost(self, session: Session, job: PodGroupInfo, pool: VictimPool) -> Amounts | None:
        """As much as plugins would ever find just."""
        return session.ask.reclaim_bound(job, pool.lots(self.queues(session, job, pool)))

    def message(self, session: Session, job: PodGroupInfo, queue: str) -> str:
        """Name the job, and how the two queues stand whose claims were compared."""
        taking, giving = _parting_queues(session, job, queue)
        return (
            f"reclaimed for job {job.key} of queue {job.queue}: "
            f"{_figures(session, giving)} gives to {_figures(session, taking)}"
        )


def _figures(session: Session, queue: str) -> str:
    """Return what a queue holds, is guaranteed and may fairly claim, for messages."""
    figures = (
        ("uses", session.ask.queue_allocated(queue)),
        ("quota", session.ask.queue_deserved(queue)),
        ("fair share", session.ask.queue_fair_share(queue)),
    )
    parts = [
        f"{name} {', '.join(f'{text} {resource}' for resource, text in amounts.describe().items())}"
        for name, amounts in figures
        if amounts is not None
    ]
    return f"queue {queue} ({'; '.join([*parts, f'priority {session.queues[queue].priority}'])})"


def _parting_queues(session: Session, job: PodGroupInfo, queue: str) -> tuple[str, str]:
    """Return the two queues whose claims are compared: the ancestors where the paths of job and victim part."""
    tree = session.queues
    taking, giving = tree.divergence(job.queue, queue)
    return tree.queues[taking].name, tree.queues[giving].name

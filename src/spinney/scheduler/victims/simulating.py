"""Trying a scenario: its victims are evicted virtually, and all jobs that wait are placed again in ordinary order.

The job the search is for must find room; a victim that finds room too is moved, or stays if it finds its own place, and
one that does not is lost. Whatever is placed is promised, never bound: the room is only there once victims are gone.
Pending jobs that are not part of the scenario are in the order too, because they decide whose turn a queue has; they
are not placed.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from spinney.cluster.statuses import ACTIVE_ALLOCATED, ACTIVE_USED
from spinney.scheduler.evaluation.job_order import JobOrder
from spinney.scheduler.framework.events import Scenario
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.statement import Statement
from spinney.scheduler.framework.tasks import PodInfo
from spinney.scheduler.placement.placing import promise_job
from spinney.scheduler.victims.order import Step
from spinney.scheduler.victims.returning import may_return


class Bystanders:
    """Pending jobs that take part in nothing but the order of queues. Mutable: a view that is kept for one action.

    Jobs of one queue that ask for the same give the queue the same standing, so one of each kind is enough, if plugins
    order alike jobs alike.
    """

    def __init__(self, session: Session, pending: Iterable[PodGroupInfo]) -> None:
        self._kinds: dict[tuple[object, ...], deque[PodGroupInfo]] = {}
        hooks = session.hooks
        alike = all(hook.alike for hook in hooks.queue_order) and all(order.alike for order in hooks.job_order)
        for job in sorted(pending, key=session.ask.job_key):
            asked = session.charges.of_all(job.tasks_to_allocate()) if alike else job.key
            self._kinds.setdefault((job.queue, asked), deque()).append(job)

    def besides(self, jobs: Mapping[PodGroupInfo, object]) -> Iterable[PodGroupInfo]:
        """Return the first pending job of each kind that is not one of ``jobs``."""
        for alike in self._kinds.values():
            while alike and alike[0] not in jobs and not alike[0].pending:
                alike.popleft()  # an earlier search has placed it
            found = next((job for job in alike if job not in jobs and job.pending), None)
            if found is not None:
                yield found


def simulate(
    session: Session,
    job: PodGroupInfo,
    pending: Sequence[PodInfo],
    steps: Sequence[Step],
    *,
    bystanders: Bystanders,
    messages: Mapping[str, str],
) -> tuple[Statement, Scenario] | None:
    """Try to place ``pending`` tasks of a job when steps are taken; return the open statement and what came of it.

    That is ``None``, with nothing left, if it failed.
    ``messages`` are what victims are told, by queue.
    """
    victims: dict[PodGroupInfo, list[PodInfo]] = {}
    for step in steps:
        victims.setdefault(step.job, []).extend(step.tasks)
    statement = session.statement()
    for victim, tasks in victims.items():
        for task in tasks:
            statement.evict(task, messages[victim.queue], beneficiary=job.key)
    taking_part: dict[PodGroupInfo, object] = {job: None, **victims}
    order = JobOrder(session.ask, [*taking_part, *bystanders.besides(taking_part)])
    refused: set[object] = set()
    alike = session.hooks.place_alike
    left = len(taking_part)
    while order and left:
        current = order.pop()
        if current not in taking_part:
            continue
        left -= 1
        if current is job:
            if not promise_job(session, statement, job, pending):
                statement.discard()
                return None
            continue
        kind = _kind(current) if alike else None
        known = kind is not None and kind in refused
        if known or not may_return(session, current):
            continue
        checkpoint = statement.checkpoint()
        if not promise_job(session, statement, current):
            statement.rollback(checkpoint)
            if kind is not None:
                refused.add(kind)
        elif current.tasks_to_allocate():
            order.push(current)
            left += 1
    return statement, Scenario(preemptor=job, pending=pending, victims=victims)


def _kind(job: PodGroupInfo) -> object:
    """Return what the placement of a victim depends on; ``None`` if that is more than what its pods ask for.

    While victims are placed again room only shrinks, so what one was refused, another of its kind is refused too.
    """
    tasks = job.tasks
    if any(task.status in ACTIVE_ALLOCATED for task in tasks):
        return None
    asked = []
    for task in tasks:
        if task.status not in ACTIVE_USED and not task.should_allocate:
            continue
        constraints = task.request.constraints
        if constraints.looks_at_pods or constraints.volumes or constraints.claims or not task.should_allocate:
            return None
        asked.append((task.pod_set.name, task.request.number))
    return (job.kind, job.root, tuple(asked))

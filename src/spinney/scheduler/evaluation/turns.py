"""Whose turn it is in an action, while its time lasts.

Jobs come in order. When the time of an action is over, the jobs that were not reached come first in the next cycle. So
a cycle ends however many jobs there are that cannot be placed, and no job waits for ever behind them.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import timedelta
from heapq import nsmallest
from typing import Final

from spinney.gangs.tree import GangKey
from spinney.scheduler.evaluation.job_order import JobOrder
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.session import Session

ALLOCATE: Final = "allocate"
REST_SECONDS: Final = 60.0
"""After a cycle that ran out of time and placed nothing; if it placed something, the next follows at once."""


def first_of_queues(session: Session, action: str, jobs: Iterable[PodGroupInfo]) -> Iterable[PodGroupInfo]:
    """Return as many jobs of each queue as an action is to look at, the first in order; unless told, all of them."""
    depth = session.config.queue_depth_per_action.get(action)
    if not depth or depth < 0:
        return jobs
    by_queue: dict[str, list[PodGroupInfo]] = {}
    for job in jobs:
        by_queue.setdefault(job.queue, []).append(job)
    return [job for each in by_queue.values() for job in nsmallest(depth, each, key=session.ask.job_key)]


class JobTurns:
    """The jobs of one action by turn. Mutable: a job that has had its turn may be put back.

    ``at_least`` so many have their turn, however long that takes.
    """

    def __init__(
        self,
        session: Session,
        action: str,
        jobs: Iterable[PodGroupInfo],
        is_over: Callable[[], bool],
        *,
        at_least: int = 0,
    ) -> None:
        self._session = session
        self._action = action
        self._is_over = is_over
        self._at_least = at_least
        self._waiting = dict.fromkeys(jobs)
        """In the order of ``jobs``; a job is found by what it is, not by its name, for that is quicker."""
        overdue = session.overdue.pop(action, frozenset())
        self._orders = [JobOrder(session.ask, part) for part in _overdue_first(self._waiting, overdue) if part]
        self._current: JobOrder | None = None

    def __iter__(self) -> Iterator[PodGroupInfo]:
        for order in self._orders:
            self._current = order
            while order:
                if self._at_least <= 0 and self._is_over():
                    self._leave()
                    return
                self._at_least -= 1
                job = order.pop()
                self._waiting.pop(job, None)
                yield job

    def upcoming(self, most: int) -> Sequence[PodGroupInfo]:
        """Return up to ``most`` jobs whose turn comes next, whatever is done about the one whose turn it is."""
        return () if self._current is None else self._current.upcoming(most)

    def skip(self, jobs: Sequence[PodGroupInfo]) -> None:
        """Count the first of the upcoming jobs as having had their turn."""
        assert self._current is not None, "a job has had its turn"
        self._current.skip(len(jobs))
        self._at_least -= len(jobs)
        for job in jobs:
            self._waiting.pop(job, None)

    def push(self, job: PodGroupInfo) -> None:
        """Put back the job whose turn it is."""
        assert self._current is not None, "a job has had its turn"
        self._waiting[job] = None
        self._current.push(job)

    @property
    def missed(self) -> Collection[PodGroupInfo]:
        """Return the jobs whose turn has not come; after the last turn those for whom no time was left."""
        return self._waiting.keys()

    def _leave(self) -> None:
        session = self._session
        missed: frozenset[GangKey] = frozenset([job.key for job in self._waiting])
        session.overdue[self._action] = missed
        session.wake_at(session.now + timedelta(seconds=0.001 if session.binds else REST_SECONDS))


def _overdue_first(jobs: Collection[PodGroupInfo], overdue: Collection[GangKey]) -> Iterator[list[PodGroupInfo]]:
    """Yield the jobs that the action did not reach the last time, and then the others."""
    if overdue:
        yield [job for job in jobs if job.key in overdue]
        yield [job for job in jobs if job.key not in overdue]
    else:
        yield list(jobs)

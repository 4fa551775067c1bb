"""Who would be placed again before a job that takes from others has its turn: what they gave up does not help it.

All who wait and all victims are placed in ordinary order in a simulation. So a victim returns before the job's turn if
its queue comes first even as it stands when the victim is back. Queues that all hold about their share are like that:
any of their jobs could be taken, and each comes back. The order alone tells, and nobody is placed to find out.
"""

from collections.abc import Iterable, Sequence
from functools import cmp_to_key
from typing import Any, NamedTuple

from spinney.scheduler.evaluation.constraints import unhonoured
from spinney.scheduler.fairshare.amounts import ZERO, Amounts, total_of
from spinney.scheduler.framework.extension_points import QueueTurn
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo
from spinney.scheduler.victims.order import Step


class _Turn(NamedTuple):
    """When a job has its turn in its queue: of those that wait, and of victims once they are evicted."""

    key: Any
    job: PodGroupInfo
    is_victim: bool = False
    holds: Amounts = ZERO
    """What a victim gives up."""
    at_once: bool = True
    """Whether a victim asks for all of it in one turn."""
    back: Sequence[PodInfo] = ()
    """The tasks that are surely placed again in that turn."""


class Returning:
    """The order in which one job and those it might take from are placed. Mutable: turns of victims are kept."""

    def __init__(self, session: Session, job: PodGroupInfo, bystanders: Iterable[PodGroupInfo]) -> None:
        """``bystanders`` are the jobs that wait besides ``job``, as far as they decide whose turn it is."""
        self._session = session
        self._job = job
        self._bystanders = tuple(bystanders)
        # A rule that promises nothing may refuse a victim the place it had, or count how often it is asked.
        self._known = session.hooks.find_victims_alike
        self._waiting: dict[int, Sequence[_Turn]] = {}
        self._hardest: dict[int, QueueTurn] = {}
        self._victims: dict[Step, _Turn] = {}

    def before(self, steps: Sequence[Step]) -> list[PodInfo]:
        """Return the tasks that steps take and that are placed again before the job, if there is room for them."""
        tree = self._session.queues
        if not self._known:
            return []
        by_job: dict[PodGroupInfo, list[Step]] = {}
        for step in steps:
            by_job.setdefault(step.job, []).append(step)
        by_giver: dict[int, list[_Turn]] = {}
        takers: set[int] = set()
        for victim, given in by_job.items():
            taking, giving = tree.divergence(self._job.queue, victim.queue)
            takers.add(taking)
            if taking == giving or len(takers) > 1:
                return []  # of one queue, or the queue that takes gives too: how it stands is not known
            by_giver.setdefault(giving, []).append(self._victim(victim, given))
        return [
            task
            for giving, victims in by_giver.items()
            for task in self._back(giving, victims, self._job_turn(next(iter(takers))))
        ]

    def _back(self, giving: int, victims: Sequence[_Turn], job: QueueTurn) -> Sequence[PodInfo]:
        """Return the tasks of victims below one queue that are placed again while it comes before ``job``."""
        session, queue = self._session, self._session.queues.queues[giving]
        turns = sorted((*victims, *self._below(giving)), key=lambda turn: turn.key)
        # Between leaves the order depends on how each stands; then each counts as if all others were back.
        in_order = len({turn.job.queue for turn in turns}) == 1
        gone = [victim.job for victim in victims]
        lost = total_of(victim.holds for victim in victims)
        found: list[PodInfo] = []
        for turn in turns:
            still_lost = lost - turn.holds if in_order and turn.at_once else ZERO
            standing = QueueTurn(queue, None if turn.is_victim else turn.job, gone, still_lost)
            if session.ask.compare_queues(standing, job) >= 0:
                return found if in_order else ()
            lost -= turn.holds
            found += turn.back
        return found

    def _below(self, giving: int) -> Sequence[_Turn]:
        """Return the jobs that wait below a queue."""
        known = self._waiting.get(giving)
        if known is None:
            tree = self._session.queues
            below = [each for each in self._bystanders if giving in tree.paths[tree.index[each.queue]]]
            known = self._waiting[giving] = list(map(_Turn, self._session.ask.job_keys(below), below))
        return known

    def _job_turn(self, taking: int) -> QueueTurn:
        """Return how the queue that takes stands when it comes last, up to the job's turn."""
        known = self._hardest.get(taking)
        if known is None:
            key, queue = self._session.ask.job_key, self._session.queues.queues[taking]
            own = key(self._job)
            first = [each for each in self._bystanders if each.queue == self._job.queue and key(each) < own]
            turns = [QueueTurn(queue, each) for each in (*first, self._job)]
            known = self._hardest[taking] = max(turns, key=cmp_to_key(self._session.ask.compare_queues))
        return known

    def _victim(self, job: PodGroupInfo, given: Sequence[Step]) -> _Turn:
        known = self._victims.get(given[0]) if len(given) == 1 else None
        if known is None:
            tasks = [task for step in given for task in step.tasks]
            known = self._look(job, tasks, at_once=len(given) == 1 and not job.pending)
            if len(given) == 1:
                self._victims[given[0]] = known
        return known

    def _look(self, job: PodGroupInfo, tasks: Sequence[PodInfo], *, at_once: bool) -> _Turn:
        session = self._session
        comes_back = at_once and may_return(session, job) and all(_fits_again(session, task) for task in tasks)
        return _Turn(
            session.ask.job_key(job.without(tasks)),
            job,
            is_victim=True,
            holds=session.charges.of_all(tasks),
            at_once=at_once,
            back=tasks if comes_back else (),
        )


def may_return(session: Session, job: PodGroupInfo) -> bool:
    """Tell whether a victim is placed again at all: not what is only disrupted as a whole, nor what nobody can keep."""
    return not job.gang.disrupted_whole and unhonoured(session, job) is None


def _fits_again(session: Session, task: PodInfo) -> bool:
    """Tell whether the rules that let a task have its place would do so again."""
    constraints = task.request.constraints
    if constraints.looks_at_pods or constraints.volumes or constraints.claims:
        return False
    return bool(session.ask.node_rules.suits(task)[task.row]) and session.ask.is_job_over_capacity(task.job, ()).ok

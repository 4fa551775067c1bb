"""Who would run by now in strict order: the bound on how long others may pass a job of which no end is known.

Those who run, were submitted after a job and have no higher priority have passed it. If it fits where they run, beside
all that come before it by priority and age, then only they keep it from running. That needs no run times, and happens
to every job sooner or later, if those of higher priority leave it room.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import cached_property
from operator import itemgetter

import numpy as np

from spinney.cluster.fitting import Demand
from spinney.cluster.journal import Rows
from spinney.cluster.table import Matrix
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo
from spinney.scheduler.plugins.backfill.memory import Remaining
from spinney.scheduler.plugins.keeping import demands_of, held_by, regions, scarce, turn, waiting_since


class Overdue:
    """Finds out in one session which jobs are overdue. Mutable: who lacks room is found out once.

    ``lacks_room`` tells whether only room keeps a job from running.
    """

    def __init__(self, session: Session, lacks_room: Callable[[PodGroupInfo, Sequence[PodInfo]], bool]) -> None:
        self._session = session
        self._lacks_room = lacks_room

    def has(self, job: PodGroupInfo, remaining: Remaining) -> bool:
        """Tell whether only those who have passed a job keep it from running; what comes before it goes first."""
        session, since = self._session, waiting_since(job)
        if since is None:
            return False
        table = session.nodes.table
        room = remaining.without_passing(since.timestamp(), job.priority, table.idle + table.releasing)
        demands = demands_of(session, job.tasks_to_allocate())
        if not _fits(room, session, job, demands):
            return False
        before = demands_of(session, list(self._tasks_before(job)))
        beside = _beside(room, session.nodes.all.rows, before)
        return beside is not None and _fits(beside, session, job, demands)

    def _tasks_before(self, job: PodGroupInfo) -> Iterator[PodInfo]:
        for place, other in self._waiting:
            if place >= _place(job):
                return
            if not other.gang_satisfied:
                yield from other.tasks_to_allocate()

    @cached_property
    def _waiting(self) -> list[tuple[tuple[int, datetime], PodGroupInfo]]:
        """Return those that lack room, in strict order."""
        jobs = map(self._session.job, self._session.snapshot.gangs.pending)
        found = [(_place(job), job) for job in jobs if self._lacks_room(job, job.tasks_to_allocate())]
        return sorted(found, key=itemgetter(0))


def _place(job: PodGroupInfo) -> tuple[int, datetime]:
    """Return the place of a job in strict order; those that came at the same moment do not go before each other."""
    return turn(job)[:2]


def _fits(room: Matrix, session: Session, job: PodGroupInfo, demands: Sequence[Demand]) -> bool:
    return any(_beside(room, rows, demands) is not None for rows in regions(session, job))


def _beside(room: Matrix, rows: Rows, demands: Sequence[Demand]) -> Matrix | None:
    """Return what is left of ``room[node, resource]`` beside demands on the fullest rows; ``None``: too little."""
    ordered = rows[np.argsort(room[rows, scarce(demands)], kind="stable")]
    held = held_by(room[ordered], ordered, demands)
    if held is None:
        return None
    left = room.copy()
    left[ordered] -= held
    return left

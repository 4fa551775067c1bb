"""In which order jobs of a queue come: gangs by age, all others by how long they have waited beside their run time."""

import math
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinney.cluster.table import Mask
from spinney.gangs.tree import GangKey
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo
from spinney.scheduler.plugins.backfill.memory import UNKNOWN, Memory
from spinney.scheduler.plugins.backfill.sweeps import SweepKind, kind_of
from spinney.scheduler.plugins.keeping import waiting_since

_NEW, _SHORTEST = 60.0, 60.0
"""Seconds: every job counts as having waited so long, and as running so long at least."""


class _Gangs(NamedTuple):
    """The gangs of a queue: their places in what follows, what they ask for, and for how many seconds they wait."""

    places: dict[GangKey, int]
    asked: npt.NDArray[np.int64]
    """``[gang, resource]``."""
    waited: npt.NDArray[np.float64]
    """``[gang]``."""


class Turns:
    """The order in one session. Mutable: run times are looked up once. Without ``shortest_first`` age alone counts.

    ``lacks_room`` tells whether only room keeps a job from running.
    """

    def __init__(
        self,
        session: Session,
        memory: Memory,
        lacks_room: Callable[[PodGroupInfo, Sequence[PodInfo]], bool],
        *,
        shortest_first: bool,
    ) -> None:
        self._session, self._memory, self._shortest_first = session, memory, shortest_first
        self._lacks_room = lacks_room
        self._usual: dict[SweepKind, float] = {}

    def rank(self, job: PodGroupInfo) -> tuple[bool, float]:
        """Return the place of a job in its queue, the smallest first; equal ones by age.

        While preemption is tried, those who would go come last: whom they give way to is placed before them.
        """
        if self._session.action == "preempt" and job.key in self._memory.running:
            return (True, math.inf)
        if self.goes_first(job):
            return (False, 0.0)
        return (True, -(self.waited(job).total_seconds() + _NEW) / max(self.lasts(job), _SHORTEST))

    def lasts(self, job: PodGroupInfo) -> float:
        """Return the seconds that a job that waits will run: as it states, as is usual, or an hour."""
        stated = self._memory.stated(job.members)
        return stated if stated is not None else self._usual_of(kind_of(job.members))

    def goes_first(self, job: PodGroupInfo) -> bool:
        """Tell whether a job gives way to no shorter one."""
        return not self._shortest_first or is_gang(job)

    def waited(self, job: PodGroupInfo) -> timedelta:
        """Return how long a job has waited."""
        return self._session.now - (waiting_since(job) or self._session.now)

    def waited_in_line(self, job: PodGroupInfo) -> float:
        """Return the seconds that a gang has waited, and those of its queue that lack room and ask for no more.

        What is kept for it serves them next: each moves up.
        """
        seconds = self.waited(job).total_seconds()
        line = self._lines.get(job.queue) if is_gang(job) else None
        if line is None:
            return seconds
        served: Mask = np.logical_and.reduce(line.asked <= self._asked(job), axis=1)
        if job.key in line.places:
            served[line.places[job.key]] = False
        return seconds + float(line.waited[served].sum())

    def is_first(self, job: PodGroupInfo) -> bool:
        """Tell whether of all single pods of its queue that wait a job's turn comes first."""
        return self._first.get(job.queue) == job.key

    @cached_property
    def _lines(self) -> dict[str, _Gangs]:
        """Return the gangs that only room keeps from starting, by queue."""
        found: dict[str, list[PodGroupInfo]] = {}
        for key in self._session.snapshot.gangs.pending:
            job = self._session.job(key)
            if is_gang(job) and self._lacks_room(job, job.tasks_to_allocate()):
                found.setdefault(job.queue, []).append(job)
        return {
            queue: _Gangs(
                {job.key: place for place, job in enumerate(jobs)},
                np.array([self._asked(job) for job in jobs]),
                np.array([self.waited(job).total_seconds() for job in jobs]),
            )
            for queue, jobs in found.items()
        }

    def _asked(self, job: PodGroupInfo) -> tuple[int, int, int]:
        return self._session.charges.of_all(job.tasks_to_allocate()).astuple()

    @cached_property
    def _first(self) -> dict[str, GangKey]:
        found: dict[str, tuple[tuple[bool, float], datetime, GangKey]] = {}
        for key in self._session.snapshot.gangs.pending:
            job = self._session.job(key)
            if not is_gang(job):
                turn = (self.rank(job), waiting_since(job) or self._session.now, key)
                found[job.queue] = min(turn, found.get(job.queue, turn))
        return {queue: key for queue, (_, _, key) in found.items()}

    def _usual_of(self, kind: SweepKind) -> float:
        known = self._usual.get(kind)
        if known is None:
            found = self._memory.usual(kind, self._session.now)
            known = self._usual[kind] = found if found is not None else UNKNOWN
        return known


def is_gang(job: PodGroupInfo) -> bool:
    """Tell whether a job has several pods."""
    return len(job.members.pods) > 1

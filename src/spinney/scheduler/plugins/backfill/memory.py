"""What is kept from one session to the next: who runs since when, how long others ran, and what was promised."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from spinney.cluster.journal import Rows
from spinney.cluster.statuses import ACTIVE_ALLOCATED
from spinney.cluster.table import Mask, Matrix
from spinney.gangs.book import GangMembers
from spinney.gangs.checkpoints import grace_of, saved_until
from spinney.gangs.tree import GangKey
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.moves import workload_of
from spinney.scheduler.framework.session import Session
from spinney.scheduler.plugins.backfill.forecasts import Forecasts, Interval
from spinney.scheduler.plugins.backfill.outlook import Ends
from spinney.scheduler.plugins.backfill.run_times import PastRunTimes, RunTime, stated
from spinney.scheduler.plugins.backfill.sweeps import SweepKind, Sweeps, kind_of

_HALF: Final = 0.5
"""A job is expected to end when so many like it had ended."""
UNKNOWN: Final = 3600.0
"""Seconds that a job is expected to run if nothing is known."""
_LATER, _SOONEST = 0.1, 60.0
"""An estimate is made anew when a job has run a tenth longer, and not within a minute."""
_JUST_STARTED: Final = 60.0
"""Where nothing is known, a job is expected to run as long again as it has run already, and so long at least."""
_KEPT: Final = 64
_LOSSES: Final = 4096
"""Of so many workloads it is remembered what they lost."""


@dataclass(slots=True)
class Running:
    """A job that runs. Mutable: its pods may change."""

    since: datetime
    members: GangMembers
    stated: float | None
    kind: SweepKind
    usual: float | None = None
    """How long those like it ran that ran longer than this one has."""
    looked_up_until: float = 0.0
    """The age up to which ``usual`` is not looked up anew."""


@dataclass(frozen=True, slots=True, eq=False)
class GivenPlace:
    """A place and a time that a job was given: ``held[row, resource]`` of ``rows``."""

    uid: str
    at: datetime
    rows: Rows
    held: Matrix
    interval: Interval | None = None
    """Seconds after ``at`` between which it will really start; ``None``: too little is known."""


class Remaining(msgspec.Struct, frozen=True, eq=False):
    """How long each pod that runs will still run: ``seconds[pod]`` on ``rows[pod]`` with ``amounts[pod, resource]``."""

    seconds: npt.NDArray[np.float64]
    rows: Rows
    amounts: Matrix
    known: Mask
    """Where that rests on something; elsewhere a pod is expected to run as long again as it has run."""
    submitted: npt.NDArray[np.float64]
    """When the job of each pod was submitted, in seconds."""
    priorities: npt.NDArray[np.int64]
    """Of the job of each pod."""
    stated: bool
    """Whether all that is known was stated."""

    def without_passing(self, submitted: float, priority: int, room: Matrix) -> Matrix:
        """Return what would be free beside ``room[node, resource]`` if nobody had passed a job: by age or by both."""
        passed = (self.submitted > submitted) & (self.priorities <= priority)
        freed = room.copy()
        np.add.at(freed, self.rows[passed], self.amounts[passed])
        return freed

    def ends(self) -> Ends:
        """Return what becomes free, as far as that is known."""
        return Ends(self.seconds[self.known], self.rows[self.known], self.amounts[self.known])

    def emptying(self, capacity: int) -> npt.NDArray[np.float64]:
        """Return the seconds until nodes would be empty if no job came, by row, as far as is known."""
        seconds = np.zeros(capacity)
        np.maximum.at(seconds, self.rows, self.seconds)
        return seconds

    def idle(self, rows: Rows, column: int, offered: float, until: float) -> float:
        """Return what is idle of a resource if no job uses what rows offer before a moment, times the seconds."""
        here = np.isin(self.rows, rows)
        used = np.minimum(self.seconds[here], until) @ self.amounts[here, column]
        return max(until * offered - float(used), 0.0)


@dataclass(slots=True)
class Memory:
    """What is known about run times, and what was promised. Mutable; a cache: without it, things are learned anew."""

    past: PastRunTimes = field(default_factory=PastRunTimes)
    sweeps: Sweeps = field(default_factory=Sweeps)
    forecasts: Forecasts = field(default_factory=Forecasts)
    running: dict[GangKey, Running] = field(default_factory=dict)
    lacking_room: int = 0
    """How many jobs found no room in the session before."""
    evicted: set[GangKey] = field(default_factory=set)
    promises: dict[GangKey, GivenPlace] = field(default_factory=dict)
    aged: dict[GangKey, None] = field(default_factory=dict)
    """Jobs for which nodes are kept though nobody knows when they are free, in the order that was found out."""
    _undone: dict[object, float] = field(default_factory=dict)
    """Seconds of work that evictions undid, by workload, the newest last."""
    _said: dict[GangKey, tuple[GangMembers, float | None]] = field(default_factory=dict)

    def begin(self, session: Session) -> None:
        """Take in what has started and ended since the session before."""
        gangs = session.snapshot.gangs
        # In the order of the snapshot: that of a set differs from process to process, and what is learned with it.
        started = {key: None for queue in gangs.started.values() for key in queue}
        waiting = set(gangs.pending)
        for key in [key for key in self.running if key not in started]:
            gone = self.running.pop(key)
            cut_short = key in self.evicted or key in waiting
            ran = None if cut_short else (session.now - gone.since).total_seconds()
            self.sweeps.end(gone.kind, key, ran)
            if ran is not None:
                self.past.add(gone.kind, ran)
        for key in [key for key in started if key not in self.running]:
            self._start(key, gangs.gangs[key], session.job(key).last_start or session.now)
        self.evicted.clear()
        self.forecasts.keep(waiting)
        self.forecasts.at(session.now.timestamp())
        for key in [key for key in self.promises if key not in waiting]:
            del self.promises[key]
        for key in [key for key in self.aged if key not in waiting]:
            del self.aged[key]
        if len(self._said) > 2 * len(waiting) + _KEPT:
            self._said = {key: said for key, said in self._said.items() if key in waiting}

    def end(self, session: Session, lacking_room: int) -> None:
        """Keep what the session after this one cannot see."""
        self.lacking_room = lacking_room
        for key in session.started:
            if key not in self.running:
                self._start(key, session.job(key).members, session.now)
        self.evicted = {eviction.gang for eviction in session.evictions}
        for key in dict.fromkeys(eviction.gang for eviction in session.evictions):
            job = session.job(key)
            workload = _lasting_key(job)
            self._undone[workload] = self._undone.pop(workload, 0.0) + self.undone_by_eviction(job, session.now)
        for workload in list(self._undone)[:-_LOSSES]:
            del self._undone[workload]

    def _start(self, key: GangKey, members: GangMembers, since: datetime) -> None:
        running = self.running[key] = Running(since, members, self.stated(members), kind_of(members))
        self._said.pop(key, None)
        self.sweeps.start(running.kind, key, since.timestamp())
        self.forecasts.came_out(key, since.timestamp())

    def stated(self, members: GangMembers) -> float | None:
        """Return the run time that a gang states; read once for as long as its pods are the same."""
        known = self._said.get(members.gang.key)
        if known is None or known[0] is not members:
            known = self._said[members.gang.key] = (members, stated(members))
        return known[1]

    def usual(self, kind: SweepKind, now: datetime, *, beyond: float = 0.0) -> float | None:
        """Return how long jobs of a kind run that run longer than ``beyond`` seconds; ``None``: not known.

        A job is compared with those that were submitted together with it, then with all of its queue and size.
        """
        sweep = self.sweeps.typical(kind, now.timestamp(), beyond=beyond)
        if sweep is not None and sweep.known:
            return sweep.seconds
        at_least = max(beyond, sweep.seconds) if sweep is not None else beyond
        known = self.past.quantile(kind, _HALF, beyond=at_least)
        if known is None and sweep is not None and 2 * at_least > UNKNOWN:
            return 2 * at_least
        return known

    def left(self, key: GangKey, now: datetime) -> RunTime | None:
        """Return how long a job that runs will still run; ``None``: nobody knows."""
        running = self.running[key]
        age = (now - running.since).total_seconds()
        if running.stated is not None and running.stated > age:
            return RunTime(running.stated - age, stated=True)
        if age >= running.looked_up_until:
            running.usual = self.usual(running.kind, now, beyond=max(age, running.stated or 0.0))
            later = age + max(age * _LATER, _SOONEST)
            running.looked_up_until = later if running.usual is None else min(later, running.usual)
        return RunTime(running.usual - age, stated=False) if running.usual is not None else None

    def undone_by_eviction(self, job: PodGroupInfo, now: datetime) -> float:
        """Return the seconds of work that a job loses if it is evicted; one that is asked to save it loses none."""
        running = self.running.get(job.key)
        if running is None or grace_of(job.members) is not None:
            return 0.0
        saved = saved_until(job.members, now) or running.since
        return max((now - max(running.since, saved)).total_seconds(), 0.0)

    def undone_before(self, job: PodGroupInfo) -> float:
        """Return the seconds of work that a job has lost to evictions before."""
        return self._undone.get(_lasting_key(job), 0.0)

    def remaining(self, session: Session, width: int) -> Remaining:
        """Return how long those that run will still run."""
        find = session.nodes.table.find
        places: dict[int, int] = {}
        vectors: list[npt.NDArray[np.int64]] = []
        seconds: list[float] = []
        rows: list[int] = []
        kinds: list[int] = []
        known: list[bool] = []
        submitted: list[float] = []
        priorities: list[int] = []
        all_stated = True
        gangs = session.snapshot.gangs.gangs
        for key, running in self.running.items():
            members = gangs[key]
            if members is not running.members:
                self.running[key] = Running(running.since, members, self.stated(members), kind_of(members))
            left = self.left(key, session.now)
            age = (session.now - running.since).total_seconds()
            lasts = left.seconds if left is not None else max(age, _JUST_STARTED)
            came = (members.gang.created or running.since).timestamp()
            for _, record in members.pods.values():
                row = find(record.node) if record.status in ACTIVE_ALLOCATED else None
                if row is None:
                    continue
                place = places.get(record.request.number)
                if place is None:
                    place = places[record.request.number] = len(vectors)
                    vectors.append(record.request.vector(width))
                seconds.append(lasts)
                rows.append(row)
                kinds.append(place)
                known.append(left is not None)
                submitted.append(came)
                priorities.append(members.gang.priority)
                all_stated &= left is None or left.stated
        amounts = np.array(vectors)[kinds] if kinds else np.zeros((0, width), dtype=np.int64)
        return Remaining(
            np.array(seconds, dtype=np.float64),
            np.array(rows, dtype=np.intp),
            amounts,
            np.array(known, dtype=np.bool_),
            np.array(submitted, dtype=np.float64),
            np.array(priorities, dtype=np.int64),
            all_stated,
        )


def _lasting_key(job: PodGroupInfo) -> object:
    """Return what a job is remembered by when its pods are replaced."""
    workload = workload_of(job)
    return job.key if workload == job.uid else workload

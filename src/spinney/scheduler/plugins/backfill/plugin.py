"""backfill: a job that cannot start is given a place and a time; others pass it only if they do not delay it. Opt-in.

When a job finds no room, the first moment is looked for at which it will, given when those that run end
(:mod:`~spinney.scheduler.plugins.backfill.run_times`), and where that will be. Jobs that come after it may use those
nodes if they end before that moment, or if what they take is left there besides; all other nodes are free to them.

``depth`` jobs of each queue are given a place: one is EASY backfill, 0 (all) is conservative backfill. What was
promised in one session stands in the next, unless an earlier place is found or somebody runs longer than expected.

Where ends are not known, nothing is promised. Once the job has waited ``agingSeconds``, the nodes that need to empty
least are kept for it alone; so nobody waits for ever.
"""

from collections import Counter
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from typing import Annotated, Final

import msgspec
import numpy as np

from spinney.api.durations import format_duration
from spinney.api.time import timestamp
from spinney.cluster.journal import Rows
from spinney.cluster.table import Mask, Matrix
from spinney.gangs.tree import GangKey
from spinney.scheduler.framework.arguments import read_arguments
from spinney.scheduler.framework.events import BatchEvent, EventHandler
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.nodes import NodeSet
from spinney.scheduler.framework.plugin import Plugin
from spinney.scheduler.framework.results import FitError
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo
from spinney.scheduler.plugins.backfill.forecasts import Interval
from spinney.scheduler.plugins.backfill.memory import Memory, Promise
from spinney.scheduler.plugins.backfill.outlook import Ends, Outlook, Place, Release
from spinney.scheduler.plugins.backfill.run_times import kind_of
from spinney.scheduler.plugins.keeping import demands_of, needing_least, regions, waiting_since

RESERVED: Final = "Reserved"
_ENTITLED: Final = frozenset({"reclaim", "preempt"})
"""Actions that take what a queue or a priority is entitled to: reservations do not stand in their way."""
_SURE: Final = 0.9
"""A job that states no run time passes if so many like it would have ended in time."""
_SAME: Final = 1.0
"""Seconds within which two moments are the same."""


class Terms(msgspec.Struct, frozen=True, rename="camel"):
    """For whom places are reserved, for how many of each queue, and in which order others pass."""

    queues: str = ""
    """Queues in which jobs are given places, by name, with commas; empty: all."""
    depth: Annotated[int, msgspec.Meta(ge=0)] = 1
    min_pods: Annotated[int, msgspec.Meta(ge=1)] = 1
    shortest_first: bool = False
    """Gangs of several pods come first, then all others by run time; within these, and once aged, by age."""
    aging_seconds: Annotated[float, msgspec.Meta(ge=0, le=1e9)] = 3600.0


@dataclass(frozen=True, slots=True, eq=False)
class Reservation:
    """A place that is kept: from ``at`` on, or from now on where that is not known."""

    key: GangKey
    at: float | None
    """Seconds from now."""
    rows: Rows
    held: Matrix
    left: Matrix
    """What others may take of the rows for longer, ``[row, resource]``; kept up to date."""
    slots: dict[int, int]


class Backfill(Plugin):
    """Keeps those who come later from delaying those who wait."""

    name = "backfill"
    arguments_type = Terms
    treats_alike = True

    def on_session_open(self, session: Session) -> None:
        """Take in who has ended, and register."""
        self._session = session
        self._terms = read_arguments(Terms, self.arguments)
        self._queues = frozenset(filter(None, map(str.strip, self._terms.queues.split(","))))
        memory = session.memory.setdefault(self.name, Memory())
        assert isinstance(memory, Memory), "nobody else writes there"
        memory.begin(session)
        self._memory = memory
        self._reservations: list[Reservation] = []
        self._given: Counter[str] = Counter()
        self._lengths: dict[GangKey, float] = {}
        self._placed: dict[int, tuple[PodInfo, Release]] = {}
        session.add_job_refused_fn(self._reserve)
        session.add_predicate_columns(self._leaves_room, stateful=True, applies_to=self._is_bound)
        session.add_job_distinction_fn(self._passes)
        session.add_event_handler(
            EventHandler(
                allocate_many=lambda event: self._took(event, 1), deallocate_many=lambda event: self._took(event, -1)
            )
        )
        if self._terms.shortest_first:
            session.add_job_order_key(self._rank)

    def on_session_close(self, session: Session) -> None:
        """Keep what the next session needs."""
        self._memory.end(session)

    # -- who may pass ------------------------------------------------------------------------------------------------

    def _is_bound(self, task: PodInfo) -> bool:
        """Tell whether a job has to leave room for another, or to keep to the place it was promised."""
        if self._session.action in _ENTITLED:
            return False
        return any(self._binds(kept, task.job) for kept in self._reservations) or self._due(task.job) is not None

    def _binds(self, kept: Reservation, job: PodGroupInfo) -> bool:
        return job.key != kept.key and not self._ends_by(job, kept)

    def _ends_by(self, job: PodGroupInfo, kept: Reservation) -> bool:
        return kept.at is not None and self._length(job) <= kept.at

    def _passes(self, job: PodGroupInfo) -> tuple[bool, ...]:
        """Return for which reservations a job is short enough: jobs that are alike in that are alike."""
        return tuple([self._ends_by(job, kept) for kept in self._reservations])

    def _leaves_room(self, task: PodInfo, job: PodGroupInfo, nodes: NodeSet) -> Mask:
        fits = np.ones(self._session.nodes.table.capacity, dtype=np.bool_)
        asked = task.request.vector(self._width)
        for kept in self._reservations:
            if self._binds(kept, job):
                fits[kept.rows] &= (kept.left >= asked).all(axis=1)
        promise = self._due(job)
        if promise is not None:
            inside = np.zeros_like(fits)
            inside[promise.rows] = True
            fits &= inside
        return fits[nodes.rows]

    def _due(self, job: PodGroupInfo) -> Promise | None:
        """Return the place that a job was promised, if it is free."""
        promise = self._memory.promises.get(job.key)
        if promise is None or promise.uid != job.uid:
            return None
        idle = self._session.nodes.table.idle
        return promise if (idle[promise.rows] >= promise.held).all() else None

    def _length(self, job: PodGroupInfo) -> float:
        """Return the seconds from now after which a job will surely have ended if it starts now, or runs already."""
        known = self._lengths.get(job.key)
        if known is None:
            known = self._lengths[job.key] = self._find_length(job)
        return known

    def _find_length(self, job: PodGroupInfo) -> float:
        if job.key in self._memory.running:
            left = self._memory.left(job.key, self._session.now)
            return left.seconds if left is not None else np.inf
        said = self._memory.stated(job.members)
        if said is None:
            said = self._memory.past.quantile(kind_of(job.members), _SURE)
        return said if said is not None else np.inf

    def _took(self, event: BatchEvent, sign: int) -> None:
        """Follow what is placed and taken back in this session."""
        length = self._length(event.job)
        for task in event.tasks:
            amounts = task.request.vector(self._width)
            if sign > 0 and np.isfinite(length):
                self._placed[id(task)] = (task, Release(length, task.row, amounts))
            else:
                self._placed.pop(id(task), None)
            for kept in self._reservations:
                slot = kept.slots.get(task.row)
                if slot is not None and self._binds(kept, event.job):
                    kept.left[slot] -= sign * amounts

    @property
    def _width(self) -> int:
        return int(self._session.nodes.table.idle.shape[1])

    # -- whom places are kept for ------------------------------------------------------------------------------------

    def _reserve(self, job: PodGroupInfo) -> None:
        """Give a place to a job that was refused, if its queue has none left to give."""
        if not self._may_reserve(job):
            return
        room = self._session.nodes.table.idle + self._session.nodes.table.releasing
        for kept in self._reservations:
            room[kept.rows] -= kept.held
        placed = [release for _, release in self._placed.values()]
        outlook = Outlook(room, [self._ends[0], *([Ends(placed, self._width)] if placed else [])])
        place = self._stands(job, outlook) or outlook.earliest(
            demands_of(self._session, job.tasks_to_allocate()), regions(self._session, job)
        )
        if place is not None and (self._ends[1] or not self._has_aged(job)):
            self._keep(job, place)
        elif self._has_aged(job):
            self._keep_empty(job)

    @cached_property
    def _ends(self) -> tuple[Ends, bool]:
        """Return when what ran before this session ends, and whether all of that was stated."""
        releases = list(self._memory.releases(self._session, self._width))
        return Ends((release for release, _ in releases), self._width), all(said for _, said in releases)

    def _may_reserve(self, job: PodGroupInfo) -> bool:
        """Tell whether only room keeps a job from running; one that shares devices finds its gaps itself."""
        if self._queues and job.queue not in self._queues:
            return False
        if self._terms.depth and self._given[job.queue] >= self._terms.depth:
            return False
        if job.gang_satisfied or not job.ready or job.gang.problem:
            return False
        tasks = job.tasks_to_allocate()
        if len(tasks) < self._terms.min_pods or any(task.request.share is not None for task in tasks):
            return False
        return self._session.ask.is_job_over_capacity(job, tasks).ok

    def _stands(self, job: PodGroupInfo, outlook: Outlook) -> Place | None:
        """Return what the job was promised before, if it still holds."""
        promise = self._memory.promises.get(job.key)
        if promise is None or promise.uid != job.uid:
            return None
        at = (promise.at - self._session.now).total_seconds()
        room = outlook.room(at + _SAME)[promise.rows]
        if at < 0 or not (room >= promise.held).all():
            return None
        return Place(at, promise.rows, promise.held, room - promise.held)

    def _keep(self, job: PodGroupInfo, place: Place) -> None:
        session = self._session
        moment = session.now + timedelta(seconds=place.at)
        before = self._memory.promises.get(job.key)
        if before is None or before.uid != job.uid or abs((before.at - moment).total_seconds()) > _SAME:
            forecasts, now = self._memory.forecasts, session.now.timestamp()
            found = forecasts.interval(job.queue, place.at)
            shifted = Interval(found.low - place.at, found.high - place.at) if found is not None else None
            before = Promise(job.uid, moment, place.rows, place.held, shifted)
            forecasts.made(job.key, job.uid, job.queue, now, place.at)
        self._memory.promises[job.key] = before = replace(before, rows=place.rows, held=place.held)
        self._enter(job, place.at, place.rows, place.held, place.left)
        if session.config.explain:
            session.record_fit_error(job, FitError(RESERVED, _expected(session, before)))

    def _keep_empty(self, job: PodGroupInfo) -> None:
        """Keep the nodes that need to empty least: when that will be is not known."""
        session = self._session
        self._memory.promises.pop(job.key, None)
        taken = {row for kept in self._reservations for row in kept.slots}
        rows = needing_least(session, job, taken)
        if rows is None:
            return
        nothing = np.zeros((len(rows), self._width), dtype=np.int64)
        self._enter(job, None, np.array(rows, dtype=np.intp), nothing, nothing.copy())
        if session.config.explain:
            waited = format_duration(self._waited(job))
            message = (
                f"{len(rows)} nodes are kept for it, which has waited {waited}; when they are free is not known, "
                "because what runs there states no run time"
            )
            session.record_fit_error(job, FitError(RESERVED, message))

    def _enter(self, job: PodGroupInfo, at: float | None, rows: Rows, held: Matrix, left: Matrix) -> None:
        self._given[job.queue] += 1
        slots = {row: slot for slot, row in enumerate(rows.tolist())}
        self._reservations.append(Reservation(job.key, at, rows, held, left, slots))

    def _has_aged(self, job: PodGroupInfo) -> bool:
        return self._waited(job).total_seconds() >= self._terms.aging_seconds

    def _waited(self, job: PodGroupInfo) -> timedelta:
        return self._session.now - (waiting_since(job) or self._session.now)

    # -- in which order ----------------------------------------------------------------------------------------------

    def _rank(self, job: PodGroupInfo) -> tuple[bool, float]:
        """Return the place of a job in its queue: gangs and those that have aged by age, all others by run time."""
        if len(job.members.pods) > 1 or self._has_aged(job):
            return False, 0.0
        return True, self._length(job)


def _expected(session: Session, promise: Promise) -> str:
    names = sorted(session.nodes.info(row).name for row in promise.rows.tolist())
    where = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    when = f"it is expected to start at {timestamp(promise.at)} on {where}"
    if promise.interval is None:
        return f"a place is kept for it: {when}; too few forecasts so far to say how sure that is"
    low, high = (timestamp(promise.at + timedelta(seconds=round(each))) for each in promise.interval)
    return f"a place is kept for it: {when} (80 % of such jobs start between {low} and {high})"

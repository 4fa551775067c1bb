"""backfill: a job that cannot start is given a place and a time; others pass it only if they do not delay it. Opt-in.

When a job finds no room, the first moment is looked for at which it will, given when those that run end
(:mod:`~spinney.scheduler.plugins.backfill.run_times`), and where that will be. Jobs that come after it may use those
nodes if they end before that moment, or if what they take is left there besides; all other nodes are free to them.

``depth`` jobs of each queue are given a place: one is EASY backfill, 0 (all) is conservative backfill. What was
promised in one session is kept in the next before anybody is placed, also from jobs of queues whose turn comes first,
if all that runs states its run time: estimates are not worth that others wait. It changes only if an earlier place is
found, or if somebody runs longer than expected. Of jobs that give way to shorter ones (``shortestFirst``) it is kept
when their turn comes.

Where ends are estimated, a gang may be passed again and again. Once it has waited ``agingSeconds``, and so long that
what keeping nodes leaves idle is little beside it, the nodes that will be empty soonest are kept for it alone, before
anybody is placed: the longer it waits, the more may be idle. Where nothing is known at all, that holds for single pods.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from typing import Annotated, Final

import msgspec
import numpy as np

from spinney.api.durations import format_duration
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
from spinney.scheduler.plugins.backfill.memory import HALF, GivenPlace, Memory, Remaining
from spinney.scheduler.plugins.backfill.outlook import Ends, Outlook, Place, Release
from spinney.scheduler.plugins.backfill.reservations import Reservation, expected_start, foreseen
from spinney.scheduler.plugins.backfill.run_times import kind_of
from spinney.scheduler.plugins.keeping import demands_of, needing_least, regions, scarce, waiting_since

RESERVED, FORESEEN = "Reserved", "Foreseen"
_ENTITLED: Final = frozenset({"reclaim", "preempt"})
"""Actions that take what a queue or a priority is entitled to: reservations do not stand in their way."""
_SURE: Final = 0.9
"""A job that states no run time passes if so many like it would have ended in time."""
_SAME: Final = 1.0
"""Seconds within which two moments are the same."""
_WORTH: Final = 0.5
"""Nodes are kept empty for a gang if that leaves idle no more than this share of what it has waited for."""
_NEW, _SHORTEST, _UNKNOWN = 60.0, 60.0, 3600.0
"""Seconds: every job counts as having waited so long, and as running so long at least; and so long if nobody knows."""


class Terms(msgspec.Struct, frozen=True, rename="camel"):
    """For whom places are reserved, for how many of each queue, and in which order others pass."""

    queues: str = ""
    """Queues in which jobs are given places, by name, with commas; empty: all."""
    depth: Annotated[int, msgspec.Meta(ge=0)] = 1
    min_pods: Annotated[int, msgspec.Meta(ge=1)] = 1
    shortest_first: bool = False
    """Gangs of several pods come first, by age; then all others by how long they have waited beside their run time."""
    aging_seconds: Annotated[float, msgspec.Meta(ge=0, le=1e9)] = 3600.0


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
        self._lengths: dict[GangKey, float] = {}
        self._placed: dict[int, tuple[PodInfo, Release]] = {}
        self._started: set[GangKey] = set()
        """Jobs that have been placed since a place was kept for them."""
        self._refused: dict[object, int] = {}
        """How many jobs of each kind were refused and have no place."""
        self._begun = False
        session.add_pre_job_allocation_fn(self._begin)
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
        return job.key != kept.key and kept.key not in self._started and not self._ends_by(job, kept)

    def _ends_by(self, job: PodGroupInfo, kept: Reservation) -> bool:
        return kept.at is not None and self._length(job) <= kept.at

    def _passes(self, job: PodGroupInfo) -> tuple[object, ...]:
        """Return for which reservations a job is short enough, and itself if it has to keep to its place."""
        due = job.key if self._due(job) is not None else None
        return (*[self._ends_by(job, kept) for kept in self._reservations], due)

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

    def _due(self, job: PodGroupInfo) -> GivenPlace | None:
        """Return the place that is kept for a job, if it is free."""
        promise = self._memory.promises.get(job.key)
        if promise is None or promise.uid != job.uid or not any(kept.key == job.key for kept in self._reservations):
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
        (self._started.add if sign > 0 else self._started.discard)(event.job.key)
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

    def _begin(self, job: PodGroupInfo) -> None:
        """Keep the places that were given in earlier sessions, before the first job of this one is placed.

        Where ends are estimated, what was promised is kept when its job's turn comes: kept first, it made the mean wait
        a sixth longer and that of large gangs twice as long on Philly's October.
        """
        if self._begun or self._session.action in _ENTITLED:
            return
        self._begun = True
        for key in list(self._memory.aged):
            waiting = self._session.job(key)
            if self._may_reserve(waiting):
                self._keep_empty(waiting)
        if not self._memory.promises or not self._remaining.stated:
            return
        for key in list(self._memory.promises):
            waiting = self._session.job(key)
            if self._goes_first(waiting) and self._may_reserve(waiting):
                place = self._stands(waiting, self._outlook())
                if place is not None:
                    self._keep(waiting, place)
        for kept in list(self._reservations):
            if kept.at:
                self._bring_forward(kept)

    def _bring_forward(self, kept: Reservation) -> None:
        """Give a job an earlier place than the one it was promised, if there is one beside all other places."""
        job = self._session.job(kept.key)
        self._reservations.remove(kept)
        place = self._earliest(job, self._outlook())
        if place is not None and kept.at is not None and place.at < kept.at - _SAME:
            self._keep(job, place)
        else:
            self._reservations.append(kept)

    def _earliest(self, job: PodGroupInfo, outlook: Outlook) -> Place | None:
        place = outlook.earliest(demands_of(self._session, job.tasks_to_allocate()), regions(self._session, job))
        return place if place is not None and not self._is_for_another_alone(place.rows) else None

    def _is_for_another_alone(self, rows: Rows) -> bool:
        """Tell whether some rows are kept for a job alone: two that wait for each other's place would wait for ever."""
        return any(kept.at is None and not kept.slots.keys().isdisjoint(rows.tolist()) for kept in self._reservations)

    def _reserve(self, job: PodGroupInfo) -> None:
        """Give a place to a job that was refused, if it has none and its queue has some left to give."""
        if not any(kept.key == job.key for kept in self._reservations) and self._may_reserve(job):
            outlook = self._outlook()
            place = self._stands(job, outlook) or self._earliest(job, outlook)
            trusted = place is not None and (self._remaining.stated or not _is_gang(job))
            alone = not trusted and self._has_aged(job) and self._keep_empty(job)
            if place is not None and not alone:
                self._keep(job, place)
        if job.key not in self._memory.promises:
            self._foresee(job)
        if self._session.config.explain:
            self._explain(job)

    def _foresee(self, job: PodGroupInfo) -> None:
        """Forecast the start of a job for which no place is kept, once: when it and those like it have room."""
        requests = frozenset(record.request.number for _, record in job.members.pods.values())
        kind = (job.queue, requests, len(job.members.pods), self._passes(job))
        before = self._refused[kind] = self._refused.get(kind, 0) + 1
        forecasts = self._memory.forecasts
        if forecasts.of(job.key, job.uid) is not None:
            return
        tasks = job.tasks_to_allocate()
        expected = self._room_for(job, tasks, before) if self._lacks_room(job, tasks) else None
        if expected is not None:
            forecasts.made(job.key, job.uid, job.queue, self._session.now.timestamp(), expected)

    def _room_for(self, job: PodGroupInfo, tasks: Sequence[PodInfo], count: int) -> float | None:
        """Return in how many seconds there is room for so many jobs like this one; ``None``: nobody knows."""
        demands, outlook, tried = demands_of(self._session, tasks), self._outlook(), count
        while tried:
            many = [replace(demand, count=demand.count * tried) for demand in demands]
            place = outlook.earliest(many, regions(self._session, job))
            if place is not None:
                return place.at * count / tried
            tried //= 2
        return None

    def _outlook(self) -> Outlook:
        """Return what will be free beside the places that are kept, and after those that they are kept for."""
        room = self._session.nodes.table.idle + self._session.nodes.table.releasing
        coming = [release for _, release in self._placed.values()]
        for kept in self._reservations:
            if kept.key in self._started:
                continue
            room[kept.rows] -= kept.held
            ends = kept.at + self._length(self._session.job(kept.key)) if kept.at is not None else np.inf
            if np.isfinite(ends):
                coming += [Release(ends, row, held) for row, held in zip(kept.rows.tolist(), kept.held, strict=True)]
        return Outlook(room, [self._ends, *([Ends.of(coming)] if coming else [])])

    @cached_property
    def _remaining(self) -> Remaining:
        """Return how long what ran before this session will still run."""
        return self._memory.remaining(self._session, self._width)

    @cached_property
    def _ends(self) -> Ends:
        return self._remaining.ends()

    def _given(self, queue: str) -> int:
        """Return for how many jobs of a queue places are kept."""
        return sum(kept.queue == queue and kept.key not in self._started for kept in self._reservations)

    def _may_reserve(self, job: PodGroupInfo) -> bool:
        """Tell whether a job may be given a place: only room keeps it from running, and its queue has some to give."""
        if self._queues and job.queue not in self._queues:
            return False
        if self._terms.depth and self._given(job.queue) >= self._terms.depth:
            return False
        tasks = job.tasks_to_allocate()
        return len(tasks) >= self._terms.min_pods and self._lacks_room(job, tasks)

    def _lacks_room(self, job: PodGroupInfo, tasks: Sequence[PodInfo]) -> bool:
        """Tell whether only room keeps a job from running; one that shares devices finds its gaps itself."""
        if job.gang_satisfied or not job.ready or job.gang.problem:
            return False
        if any(task.request.share is not None for task in tasks):
            return False
        return self._session.ask.is_job_over_capacity(job, tasks).ok

    def _stands(self, job: PodGroupInfo, outlook: Outlook) -> Place | None:
        """Return what the job was promised before, if it still holds."""
        promise = self._memory.promises.get(job.key)
        if promise is None or promise.uid != job.uid:
            return None
        at = max((promise.at - self._session.now).total_seconds(), 0.0)
        room = outlook.room(at + _SAME)[promise.rows]
        if not (room >= promise.held).all() or self._is_for_another_alone(promise.rows):
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
            before = GivenPlace(job.uid, moment, place.rows, place.held, shifted)
            forecasts.made(job.key, job.uid, job.queue, now, place.at)
        self._memory.promises[job.key] = replace(before, rows=place.rows, held=place.held)
        self._memory.aged.pop(job.key, None)
        self._enter(job, place.at, place.rows, place.held, place.left)

    def _keep_empty(self, job: PodGroupInfo) -> bool:
        """Keep the nodes that will be empty soonest, if that leaves little idle beside what the job has waited for."""
        session, table = self._session, self._session.nodes.table
        self._memory.aged.pop(job.key, None)
        demands = demands_of(session, job.tasks_to_allocate())
        column = scarce(demands)
        emptying = self._remaining.emptying(table.capacity, column)
        taken = {row for kept in self._reservations for row in kept.slots}
        rows = needing_least(session, job, taken, emptying.seconds)
        if rows is None:
            return False
        offered = int(table.allocatable[rows, column].sum())
        idle = float(emptying.seconds[rows].max()) * offered - float(emptying.work[rows].sum())
        asked = sum(int(demand.request[column]) * demand.count for demand in demands)
        if idle > _WORTH * self._waited(job).total_seconds() * asked:
            return False
        self._memory.promises.pop(job.key, None)
        self._memory.aged[job.key] = None
        nothing = np.zeros((len(rows), self._width), dtype=np.int64)
        self._enter(job, None, np.array(rows, dtype=np.intp), nothing, nothing.copy())
        return True

    def _explain(self, job: PodGroupInfo) -> None:
        """Say which place is kept for a job that was refused, if one is, or when it will start."""
        session = self._session
        kept = next((kept for kept in self._reservations if kept.key == job.key), None)
        if kept is None:
            forecast = self._memory.forecasts.of(job.key, job.uid)
            told = foreseen(session.now, forecast) if forecast is not None else None
            if told is not None:
                session.record_fit_error(job, FitError(FORESEEN, told))
            return
        message = (
            expected_start(session, self._memory.promises[job.key])
            if kept.at is not None
            else f"{len(kept.rows)} nodes are kept for it, which has waited {format_duration(self._waited(job))}; when "
            "they are free is not known, because what runs there states no run time"
        )
        session.record_fit_error(job, FitError(RESERVED, message))

    def _enter(self, job: PodGroupInfo, at: float | None, rows: Rows, held: Matrix, left: Matrix) -> None:
        slots = {row: slot for slot, row in enumerate(rows.tolist())}
        self._reservations.append(Reservation(job.key, job.queue, at, rows, held, left, slots))

    def _has_aged(self, job: PodGroupInfo) -> bool:
        return self._waited(job).total_seconds() >= self._terms.aging_seconds

    def _waited(self, job: PodGroupInfo) -> timedelta:
        return self._session.now - (waiting_since(job) or self._session.now)

    # -- in which order ----------------------------------------------------------------------------------------------

    def _rank(self, job: PodGroupInfo) -> tuple[bool, float]:
        """Return the place of a job in its queue: gangs by age, all others by their wait beside their run time."""
        if self._goes_first(job):
            return (False, 0.0)
        usual = self._memory.stated(job.members)
        if usual is None:
            usual = self._memory.past.quantile(kind_of(job.members), HALF)
        runs = max(usual if usual is not None else _UNKNOWN, _SHORTEST)
        return (True, -(self._waited(job).total_seconds() + _NEW) / runs)

    def _goes_first(self, job: PodGroupInfo) -> bool:
        """Tell whether a job gives way to no shorter one."""
        return not self._terms.shortest_first or _is_gang(job)


def _is_gang(job: PodGroupInfo) -> bool:
    return len(job.members.pods) > 1

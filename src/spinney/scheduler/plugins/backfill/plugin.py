"""backfill: a job that cannot start is given a place and a time; others pass it only if they do not delay it. Opt-in.

When a job finds no room, the first moment is looked for at which it will, given when those that run end
(:mod:`~spinney.scheduler.plugins.backfill.run_times`), and where that will be. Jobs that come after it may use those
nodes if they end before that moment, or if what they take is left there besides; all other nodes are free to them.

``depth`` jobs of each queue are given a place: one is EASY backfill, 0 (all) is conservative backfill. What was
promised in one session is kept in the next before any job is placed, also from jobs of queues whose turn comes first,
if all that runs states its run time: estimates are not worth that others wait. It changes only if an earlier place is
found, or if a job runs longer than expected. Of jobs that give way to shorter ones (``shortestFirst``) it is kept
when their turn comes.

Where ends are estimated, a place is kept only if others lose little by it beside what the job has waited. Once a gang
has waited ``agingSeconds``, the nodes that will be empty soonest are kept for it alone, at the same price, before
other jobs are placed: the longer it waits, and the fewer wait with it, the more may be idle. At any price they are kept
once it would run by now in strict order (:mod:`~spinney.scheduler.plugins.backfill.overdue`): so nobody starves. Single
pods that need most of a node are kept one from smaller ones, at the price.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cached_property, partial
from itertools import islice
from typing import Annotated, Final

import msgspec
import numpy as np

from spinney.cluster.fitting import Demand
from spinney.cluster.journal import Rows
from spinney.cluster.resources import GPU
from spinney.cluster.table import Mask, Matrix
from spinney.extensions.arguments import InvalidArguments, read_arguments
from spinney.gangs.tree import GangKey
from spinney.scheduler.framework.events import BatchEvent, EventHandler
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.nodes import NodeSet
from spinney.scheduler.framework.plugin import Plugin
from spinney.scheduler.framework.results import FitError
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo
from spinney.scheduler.plugins.backfill.forecasts import Interval
from spinney.scheduler.plugins.backfill.giving_way import GivingWay
from spinney.scheduler.plugins.backfill.lines import LONGEST, WaitingLine
from spinney.scheduler.plugins.backfill.memory import GivenPlace, Memory, Remaining
from spinney.scheduler.plugins.backfill.outlook import Ends, Outlook, Place, Release
from spinney.scheduler.plugins.backfill.overdue import Overdue
from spinney.scheduler.plugins.backfill.reservations import (
    Reservation,
    expected_start,
    foreseen,
    kept_alone,
    slots_of,
)
from spinney.scheduler.plugins.backfill.slots import Slots
from spinney.scheduler.plugins.backfill.sweeps import kind_of
from spinney.scheduler.plugins.backfill.turns import Turns
from spinney.scheduler.plugins.keeping import demands_of, needing_least, regions, scarce

RESERVED, FORESEEN = "Reserved", "Foreseen"
_ENTITLED: Final = frozenset({"reclaim", "preempt"})
"""Actions that take what a queue or a priority is entitled to: a job does not keep to its own place in them."""
_SURE: Final = 0.9
"""A job that states no run time passes if so many like it would have ended in time."""
_SAME: Final = 1.0
"""Seconds within which two moments are the same."""
_WORTH: Final = 0.5
"""Nodes are kept for a job if all others together wait no more than this share of what its line has waited."""
_PLACES: Final = 128
"""So many are kept at most in all: with each, the next takes longer to find."""
_FORESEEN: Final = 10 * 365 * 24 * 3600.0
"""Seconds: what lies further in the future is not worth telling, and may be beyond all dates."""
_SINGLE: Final = 24.0
"""A single pod that is given no place waits so many times as long as a gang before a node is kept for it."""


class Terms(msgspec.Struct, frozen=True, rename="camel"):
    """For whom places are reserved, for how many of each queue, and in which order others pass."""

    queues: str = ""
    """Queues in which jobs are given places, by name, with commas; empty: all."""
    depth: Annotated[int, msgspec.Meta(ge=0)] = 1
    min_pods: Annotated[int, msgspec.Meta(ge=1)] = 1
    shortest_first: bool = False
    """Gangs of several pods come first, by age; then all others by how long they have waited beside their run time."""
    aging_seconds: Annotated[float, msgspec.Meta(ge=0, le=1e9)] = 3600.0
    give_way: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """A running job is preempted for a waiting one if it still has so many times as long to run as it loses by that,
    the other's run and work done again, and if all in line with the other save as much as it costs others; 0: never."""
    give_way_across_queues: bool = False
    """Jobs of other queues give way, too, where their queue keeps what it is guaranteed."""

    def __post_init__(self) -> None:
        if self.give_way_across_queues and not self.give_way:
            raise InvalidArguments([("giveWayAcrossQueues", "nobody gives way without giveWay above 0")])


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
        self._turns = Turns(session, memory, self._lacks_room, shortest_first=self._terms.shortest_first)
        self._overdue = Overdue(session, self._lacks_room)
        self._reservations: list[Reservation] = []
        self._lengths: dict[GangKey, float] = {}
        self._placed: dict[int, tuple[PodInfo, Release]] = {}
        self._started: set[GangKey] = set()
        """Jobs that have been placed since a place was kept for them."""
        self._slots: dict[object, Slots] = {}
        """When jobs of each kind that were refused and have no place will find room."""
        self._lacking_room: list[PodGroupInfo] = []
        """Jobs that were refused for want of room alone, in their order."""
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
        if self._terms.give_way:
            times, across_queues = self._terms.give_way, self._terms.give_way_across_queues
            lacking_room = self._lacking_room.__len__
            GivingWay(session, memory, times, lacking_room, self._line_of, across_queues=across_queues).register()
        if self._terms.shortest_first or self._terms.give_way:
            session.add_job_order_key(self._turns.rank)

    def on_session_close(self, session: Session) -> None:
        """Keep what the next session needs."""
        self._memory.end(session, len(self._lacking_room))

    # -- who may pass ------------------------------------------------------------------------------------------------

    def _is_bound(self, task: PodInfo) -> bool:
        """Tell whether a job has to leave room for another, or to keep to the place it was given.

        Whom others were evicted for has not: it would wait beside the room they left, and have them evicted again.
        """
        if self._session.action == "reclaim" or task.job.key in self._session.promised:
            return False
        if any(self._binds(kept, task.job) for kept in self._reservations):
            return True
        return self._session.action not in _ENTITLED and self._due(task.job) is not None

    def _binds(self, kept: Reservation, job: PodGroupInfo) -> bool:
        if kept.from_smaller and _gpus_of_pod(job) >= kept.from_smaller:
            return False
        may_precede = self._session.action == "preempt" or kept.queue == job.queue
        if may_precede and self._session.job(kept.key).priority < job.priority:
            return False
        return job.key != kept.key and kept.key not in self._started and not self._ends_by(job, kept)

    def _ends_by(self, job: PodGroupInfo, kept: Reservation) -> bool:
        return kept.at is not None and self._length(job) <= kept.at

    def _passes(self, job: PodGroupInfo) -> tuple[object, ...]:
        """Return which reservations bind a job, itself if it keeps to its place, and if it is free."""
        due = job.key if self._due(job) is not None else None
        free = job.key in self._session.promised
        return (*[self._binds(kept, job) for kept in self._reservations], due, free)

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
            if self._has_aged(waiting) and (self._may_reserve(waiting) or self._is_starved(waiting)):
                self._keep_empty(waiting)
        if not self._memory.promises or not self._remaining.stated:
            return
        for key in list(self._memory.promises):
            waiting = self._session.job(key)
            if self._turns.goes_first(waiting) and self._may_reserve(waiting):
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
        if place is None or place.at > _FORESEEN or self._is_for_another_alone(place.rows):
            return None
        return place

    def _is_for_another_alone(self, rows: Rows) -> bool:
        """Tell whether some rows are kept for a job alone: two that wait for each other's place would wait for ever."""
        alone = (kept for kept in self._reservations if kept.at is None and not kept.from_smaller)
        return any(not kept.slots.keys().isdisjoint(rows.tolist()) for kept in alone)

    def _reserve(self, job: PodGroupInfo) -> None:
        """Give a place to a job that was refused, if it has none and its queue has some left to give."""
        if not any(kept.key == job.key for kept in self._reservations):
            if self._may_reserve(job):
                self._give_place(job)
            elif self._is_starved(job):
                self._keep_empty(job)
        if self._lacks_room(job, job.tasks_to_allocate()):
            self._lacking_room.append(job)
            if job.key not in self._memory.promises:
                self._foresee(job)
        if self._session.config.explain:
            self._explain(job)

    def _give_place(self, job: PodGroupInfo) -> None:
        """Keep a place for a job: where ends are estimated, one of its own first, and only if others lose little."""
        outlook = self._outlook()
        place = self._stands(job, outlook) or self._earliest(job, outlook)
        sure = place is not None and self._remaining.stated
        if not sure and self._has_aged(job) and self._keep_empty(job):
            return
        if place is not None and (sure or self._is_worth(job, place.rows, place.held, place.at)):
            self._keep(job, place)

    def _foresee(self, job: PodGroupInfo) -> None:
        """Forecast the start of a job for which no place is kept, once: when its turn comes after those like it."""
        kind = (*_asked_for(job), self._passes(job))
        slots = self._slots.get(kind)
        if slots is None:
            demands = demands_of(self._session, job.tasks_to_allocate())
            slots = self._slots[kind] = Slots(partial(self._room_for, demands, job))
        lasts, forecasts = self._turns.lasts(job), self._memory.forecasts
        if forecasts.of(job.key, job.uid) is not None:
            slots.skip(lasts)
        elif (expected := slots.next(lasts)) is not None and expected <= _FORESEEN:
            forecasts.made(job.key, job.uid, job.queue, self._session.now.timestamp(), expected)

    def _room_for(self, demands: Sequence[Demand], job: PodGroupInfo, count: int) -> float | None:
        """Return in how many seconds there is room for so many jobs like this one; ``None``: nobody knows."""
        many = [replace(demand, count=demand.count * count) for demand in demands]
        place = self._outlook(but=job).earliest(many, regions(self._session, job))
        return place.at if place is not None else None

    def _line_of(self, job: PodGroupInfo) -> WaitingLine:
        """Return the jobs of a queue that wait for the same room as one, which is the first of them."""
        kind = _asked_for(job)
        alike = (other for other in self._lacking_room if _asked_for(other) == kind)
        behind = (other for other in alike if other.key != job.key and other.key not in self._started)
        lengths = [self._turns.lasts(other) for other in (job, *islice(behind, LONGEST - 1))]
        return WaitingLine(lengths, partial(self._room_for, demands_of(self._session, job.tasks_to_allocate()), job))

    def _outlook(self, but: PodGroupInfo | None = None) -> Outlook:
        """Return what will be free beside the places that are kept for others, and after those they are kept for."""
        room = self._session.nodes.table.idle + self._session.nodes.table.releasing
        coming = [release for _, release in self._placed.values()]
        for kept in self._reservations:
            if kept.key in self._started or (but is not None and kept.key == but.key):
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

    def _given(self, queue: str, *, smaller: bool = False) -> int:
        """Return for how many jobs of a queue places are kept."""
        return sum(
            kept.queue == queue and kept.key not in self._started and bool(kept.from_smaller) == smaller
            for kept in self._reservations
        )

    def _may_reserve(self, job: PodGroupInfo) -> bool:
        """Tell whether a job may be given a place: only room keeps it from running, and its queue has some to give."""
        if self._queues and job.queue not in self._queues:
            return False
        if len(self._reservations) >= _PLACES or 0 < self._terms.depth <= self._given(job.queue):
            return False
        tasks = job.tasks_to_allocate()
        return len(tasks) >= self._terms.min_pods and self._lacks_room(job, tasks)

    def _is_starved(self, job: PodGroupInfo) -> bool:
        """Tell whether smaller pods have kept one from a node for long that needs most of it, and it has no place."""
        tasks = job.tasks_to_allocate()
        if len(tasks) != 1 or len(tasks) >= self._terms.min_pods or not self._has_aged(job, _SINGLE):
            return False
        most = int(self._session.nodes.table.allocatable[self._session.nodes.all.rows, GPU].max(initial=0))
        if 2 * tasks[0].request.gpus <= most or (self._queues and job.queue not in self._queues):
            return False
        if self._given(job.queue, smaller=True) or not self._turns.is_first(job):
            return False
        return self._lacks_room(job, tasks)

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
        self._reservations.append(
            Reservation(job.key, job.queue, place.at, place.rows, place.held, place.left, slots_of(place.rows))
        )

    def _keep_empty(self, job: PodGroupInfo) -> bool:
        """Keep the nodes that will be empty soonest, if others lose little by it, or if a gang is overdue."""
        session, table = self._session, self._session.nodes.table
        self._memory.aged.pop(job.key, None)
        emptying = self._remaining.emptying(table.capacity)
        smaller = 0 if len(job.tasks_to_allocate()) >= self._terms.min_pods else _gpus_of_pod(job)
        taken = {row for kept in self._reservations if smaller or not kept.from_smaller for row in kept.slots}
        found = needing_least(session, job, taken, emptying)
        if found is None:
            return False
        rows = np.array(found, dtype=np.intp)
        worth = self._is_worth(job, rows, table.allocatable[rows], float(emptying[rows].max()))
        if not worth and (smaller or not self._overdue.has(job, self._remaining)):
            return False
        self._memory.promises.pop(job.key, None)
        self._memory.aged[job.key] = None
        nothing = np.zeros((len(rows), self._width), dtype=np.int64)
        self._reservations.append(
            Reservation(job.key, job.queue, None, rows, nothing, nothing.copy(), slots_of(rows), smaller)
        )
        return True

    def _is_worth(self, job: PodGroupInfo, rows: Rows, kept: Matrix, seconds: float) -> bool:
        """Tell whether others lose little by what is kept for a job, beside what all have waited whom it serves.

        What is idle until then would have served those who wait for room: each of them waits longer by the time in
        which all nodes together do as much.
        """
        nodes = self._session.nodes
        column = scarce(demands_of(self._session, job.tasks_to_allocate()))
        idle = self._remaining.idle(rows, column, float(kept[:, column].sum()), seconds)
        everything = float(nodes.table.allocatable[nodes.all.rows, column].sum())
        others = max(self._memory.lacking_room - 1, 1)
        return others * idle <= _WORTH * self._turns.waited_in_line(job) * everything

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
        if kept.at is not None:
            message = expected_start(session, self._memory.promises[job.key])
        else:
            message = kept_alone(kept, self._turns.waited(job))
        session.record_fit_error(job, FitError(RESERVED, message))

    def _has_aged(self, job: PodGroupInfo, times: float = 1.0) -> bool:
        return self._turns.waited(job).total_seconds() >= times * self._terms.aging_seconds


def _gpus_of_pod(job: PodGroupInfo) -> int:
    """Return how many GPUs the largest pod of a job asks for."""
    return max((record.request.gpus for _, record in job.members.pods.values()), default=0)


def _asked_for(job: PodGroupInfo) -> tuple[object, ...]:
    """Return what jobs have in common that can take each other's place: queue, requests, and number of pods."""
    requests = frozenset(record.request.number for _, record in job.members.pods.values())
    return job.queue, requests, len(job.members.pods)

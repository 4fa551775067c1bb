"""The figures of a replay, computed from the trace and its history alone."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from spinney.sim.replay.fragmentation import FreeSpace, fragmentation
from spinney.sim.replay.history import History, JobHappening
from spinney.sim.replay.trace import WHOLE, Ask, Job, Trace

_HOUR: Final = 3600.0
_POINTS: Final = 240
"""Points of each curve."""
_SHORTEST: Final = 60.0
"""Slowdown counts shorter jobs as if they took so long."""


class Times(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of some jobs."""

    jobs: int
    mean: float = 0.0
    p50: float = 0.0
    p90: float = 0.0
    p99: float = 0.0
    longest: float = 0.0


class JobTimes(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs of one kind, size or queue: how long they waited, and took from submission to end."""

    jobs: int
    """All of them, also those that never started or finished."""
    wait: Times
    """Of those that finished; where the trace has no duration, from submission to the first start."""
    completion: Times
    slowdown: float | None
    """Mean of completion over duration, durations below a minute counted as one; at least 1. Of those that finished."""
    never_started: int


class Point(msgspec.Struct, frozen=True, array_like=True):
    """A point of a curve."""

    x: float
    y: float


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What a replay came to."""

    jobs: int
    started: int
    gpus: int
    allocated: float
    """Per cent of all GPUs that were given out when the last job had been submitted."""
    unallocated_gpus: float
    """GPUs that were free at the same moment, of nodes that had not failed and took pods."""
    fragmentation: float
    """Per cent of all GPUs that were free then and lost to typical pods."""
    used: float
    """Per cent of GPU seconds in use within the window (without one: until the last submission)."""
    arrived: list[Point]
    """GPUs given out, against GPUs asked for so far, both in per cent of all."""
    occupancy: list[Point]
    """GPUs given out in per cent, by hours."""
    waiting: list[Point]
    """Jobs that wait, by hours."""
    nodes_in_use: float
    """Mean over time."""
    most_nodes_in_use: int
    everybody: JobTimes
    by_size: dict[str, JobTimes]
    by_queue: dict[str, JobTimes]
    by_kind: dict[str, JobTimes]
    waited: int
    """Jobs that did not start in the moment they were submitted."""
    evictions: int
    """How often jobs were evicted: each time counts."""
    failures: int
    """How often jobs lost a node that failed: each time counts."""
    lost_gpu_hours: float
    """GPU hours of work that eviction and failing nodes undid."""
    fairness: float | None
    """Jain's index of the mean slowdown of queues: 1 if all fare alike, 1/n if one has all the delay.

    A queue of which nothing finished has no slowdown, and does not count."""
    cycles: int
    cycle_seconds: Times
    pods_per_second: float
    """Pods placed for each second in cycles."""
    seconds: float
    virtual_seconds: float


def figures_of(trace: Trace, history: History) -> Figures:
    """Return the figures of a replay."""
    return _Reading(trace, history).figures()


class _Reading:
    """One pass over the events of a history."""

    def __init__(self, trace: Trace, history: History) -> None:
        self._trace = trace
        self._history = history
        self._place = {machine.name: place for place, machine in enumerate(trace.machines)}
        self._all = max(trace.gpus * WHOLE, 1)
        self._given = 0
        self._asked = 0
        self._on: dict[str, int] = {}
        self._first_start: dict[int, float] = {}
        self._start: dict[int, JobHappening] = {}
        self._ended: dict[int, float] = {}
        self._evictions = self._failures = 0
        self._lost = 0.0
        self._arrived: list[tuple[float, float]] = []
        self._steps: list[tuple[float, int, int, int]] = []
        """Moments at which what is given out, who waits, or which nodes are in use changed."""
        self._waiting = 0
        for event in history.events:
            self._read(event)

    def _read(self, event: JobHappening) -> None:
        job = self._trace.jobs[event.job]
        if event.what == "submitted":
            self._asked += job.gpu_milli
            self._waiting += 1
        elif event.what == "started":
            self._waiting -= 1
            self._first_start.setdefault(event.job, event.at)
            self._start[event.job] = event
            self._put(job, event, 1)
        elif (started := self._start.pop(event.job, None)) is None:
            self._waiting -= 1
        else:
            self._put(job, started, -1)
            if event.what == "ended":
                self._ended[event.job] = event.at
            else:
                self._waiting += 1
                self._lost += (event.at - started.at) * job.gpu_milli / WHOLE / _HOUR
                self._evictions += event.what == "evicted"
                self._failures += event.what == "failed"
        self._steps.append((event.at, self._given, self._waiting, len(self._on)))
        if event.what in {"submitted", "started"} and self._asked:
            self._arrived.append((100 * self._asked / self._all, 100 * self._given / self._all))

    def _put(self, job: Job, event: JobHappening, sign: int) -> None:
        self._given += sign * job.gpu_milli
        for node in event.nodes:
            users = self._on.get(node, 0) + sign
            if users:
                self._on[node] = users
            else:
                self._on.pop(node, None)

    def figures(self) -> Figures:
        trace, history = self._trace, self._history
        last = max((job.submitted for job in trace.jobs), default=0.0)
        window = trace.window or (0.0, max(last, 1e-9))
        allocated, free, lost = self._when(last)
        moments = np.array([step[0] for step in self._steps] or [0.0])
        series = np.array([step[1:] for step in self._steps] or [(0, 0, 0)], dtype=np.float64)
        counted = [number for number, job in enumerate(trace.jobs) if job.counted]
        queues = self._grouped(counted, lambda job: job.queue)
        horizon = max(history.ended_at, 1e-9)
        return Figures(
            jobs=len(counted),
            started=sum(number in self._first_start for number in counted),
            gpus=trace.gpus,
            allocated=100 * allocated / self._all,
            unallocated_gpus=free / WHOLE,
            fragmentation=100 * lost * WHOLE / self._all,
            used=100 * _mean_between(moments, series[:, 0], *window) / self._all,
            arrived=_thinned(self._in_order() if trace.offered_once else self._arrived),
            occupancy=_curve(moments, 100 * series[:, 0] / self._all, horizon),
            waiting=_curve(moments, series[:, 1], horizon),
            nodes_in_use=_mean_between(moments, series[:, 2], 0.0, max(last, 1e-9)),
            most_nodes_in_use=int(series[:, 2].max()),
            everybody=self._group(counted),
            by_size=self._grouped(counted, size_of),
            by_queue=queues,
            by_kind=self._grouped(counted, lambda job: job.kind),
            waited=sum(self._first_start.get(number, np.inf) > trace.jobs[number].submitted for number in counted),
            evictions=self._evictions,
            failures=self._failures,
            lost_gpu_hours=self._lost,
            fairness=_jain([group.slowdown for group in queues.values() if group.slowdown is not None]),
            cycles=len(history.cycle_seconds),
            cycle_seconds=times_of(history.cycle_seconds),
            pods_per_second=history.decided / max(sum(history.cycle_seconds), 1e-9),
            seconds=history.seconds,
            virtual_seconds=history.ended_at,
        )

    def _in_order(self) -> list[tuple[float, float]]:
        """Return the curve of a trace whose jobs are offered once and never end: each was decided when it came."""
        asked = given = 0
        points = []
        for number, job in enumerate(self._trace.jobs):
            asked += job.gpu_milli
            given += job.gpu_milli if number in self._first_start else 0
            points.append((100 * asked / self._all, 100 * given / self._all))
        return points

    def _when(self, moment: float) -> tuple[int, int, float]:
        """Return what was given out and what was free, in thousandths, and the GPUs lost to fragmentation.

        That is once everything at ``moment`` had happened; what a failed or closed node has is not free.
        """
        space, given = FreeSpace.empty(self._trace.machines), 0
        held: dict[int, JobHappening] = {}
        for event in self._history.events:
            if event.at > moment and not self._trace.offered_once:
                break
            if event.what == "started":
                held[event.job] = event
            elif event.what != "submitted":
                held.pop(event.job, None)
        for number, event in held.items():
            job = self._trace.jobs[number]
            given += job.gpu_milli
            for node, ask, devices in zip(event.nodes, job.asks, event.devices, strict=True):
                space.take(self._place[node], ask, devices)
        for outage in (*self._trace.outages, *self._trace.closures):
            if outage.covers(moment):
                space.gpus[self._place[outage.machine]] = 0
        return given, int(space.gpus.sum()), fragmentation(space, self._trace.demand or _demand(self._trace.jobs))

    # -- groups ------------------------------------------------------------------------------------------------------

    def _grouped(self, numbers: Iterable[int], name: Callable[[Job], str]) -> dict[str, JobTimes]:
        found: dict[str, list[int]] = {}
        for number in numbers:
            found.setdefault(name(self._trace.jobs[number]), []).append(number)
        return {key: self._group(found[key]) for key in sorted(found, key=_natural)}

    def _group(self, numbers: Sequence[int]) -> JobTimes:
        jobs = self._trace.jobs
        done = [number for number in numbers if number in self._ended and jobs[number].duration is not None]
        durations = np.array([jobs[number].duration for number in done], dtype=np.float64)
        completion = np.array([self._ended[number] - jobs[number].submitted for number in done], dtype=np.float64)
        lasting = [number for number in numbers if number in self._first_start and jobs[number].duration is None]
        until_start = [self._first_start[number] - jobs[number].submitted for number in lasting]
        slowdowns = np.maximum(completion / np.maximum(durations, _SHORTEST), 1.0)
        return JobTimes(
            jobs=len(numbers),
            wait=times_of(np.append(completion - durations, until_start)),
            completion=times_of(completion),
            slowdown=float(slowdowns.mean()) if done else None,
            never_started=sum(number not in self._first_start for number in numbers),
        )


def size_of(job: Job) -> str:
    """Return the range of sizes that a job is reported under."""
    gpus = job.gpu_milli / WHOLE
    if gpus <= 0:
        return "no GPU"
    if gpus < 1:
        return "below 1 GPU"
    for most, name in ((1, "1 GPU"), (4, "2-4 GPUs"), (8, "5-8 GPUs")):
        if gpus <= most:
            return name
    return "above 8 GPUs"


def times_of(seconds: Sequence[float] | np.ndarray) -> Times:
    """Return mean, percentiles and maximum of some seconds."""
    values = np.asarray(seconds, dtype=np.float64)
    if not len(values):
        return Times(jobs=0)
    p50, p90, p99 = np.percentile(values, [50, 90, 99]).tolist()
    return Times(jobs=len(values), mean=float(values.mean()), p50=p50, p90=p90, p99=p99, longest=float(values.max()))


def _demand(jobs: Sequence[Job]) -> list[tuple[Ask, int]]:
    counts: dict[Ask, int] = {}
    for job in jobs:
        for ask in job.asks:
            counts[ask] = counts.get(ask, 0) + 1
    return sorted(counts.items(), key=lambda each: -each[1])[:50]


def _mean_between(moments: np.ndarray, values: np.ndarray, begin: float, end: float) -> float:
    """Return the mean over time of a quantity that changes at ``moments``."""
    inside = np.clip(np.append(moments, np.inf), begin, end)
    return float((np.diff(inside) * values).sum() / max(end - begin, 1e-9))


def _curve(moments: np.ndarray, values: np.ndarray, horizon: float) -> list[Point]:
    at = np.linspace(0.0, horizon, _POINTS)
    found = np.searchsorted(moments, at, side="right") - 1
    heights = np.where(found >= 0, values[np.maximum(found, 0)], 0.0)
    return [Point(round(x / _HOUR, 3), round(float(y), 3)) for x, y in zip(at.tolist(), heights.tolist(), strict=True)]


def _thinned(points: Sequence[tuple[float, float]]) -> list[Point]:
    step = max(len(points) // _POINTS, 1)
    kept = [*points[::step], *points[-1:]]
    return [Point(round(x, 3), round(y, 3)) for x, y in kept]


def _jain(values: Sequence[float]) -> float | None:
    if not values:
        return None
    total, squares = sum(values), sum(value * value for value in values)
    return total * total / (len(values) * squares)


_ORDER: Final[Mapping[str, int]] = {
    name: place for place, name in enumerate(("no GPU", "below 1 GPU", "1 GPU", "2-4 GPUs", "5-8 GPUs", "above 8 GPUs"))
}


def _natural(name: str) -> tuple[int, str]:
    return _ORDER.get(name, len(_ORDER)), name

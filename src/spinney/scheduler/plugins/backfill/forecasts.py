"""When a job will start, as an interval that holds for 80 % of jobs, learned from how forecasts before it came out.

The expected start comes from the outlook. How far it was off is remembered for each job that was forecast once it has
started, and the interval is as wide as 80 % of the newest of these need. Both its ends learn by themselves: if more or
fewer than 10 % start before it begins, later ones begin earlier or later, and so with those that start after it has
ended (adaptive conformal prediction), beyond all that was seen if need be. So they hold while the load changes.

Jobs that are submitted together are early or late together: they count as one occasion. Before enough forecasts of
enough occasions have come out nothing is claimed.
"""

import heapq
import math
from collections import deque
from collections.abc import Collection, Container, Sequence
from typing import Final, NamedTuple

WANTED: Final = 0.8
"""How many starts are to lie inside."""
FEWEST: Final = 20
"""Nothing is claimed before so many forecasts have come out."""
OCCASIONS: Final = 10
"""Nor before they are of so many occasions."""
_TOGETHER: Final = 600.0
"""Seconds: jobs of a queue that are told their start within this time of the one before are of one occasion."""
_KEPT: Final = 1000
_OF_QUEUE: Final = 50
"""From so many on, of enough occasions, a queue is judged by its own."""
_STEP: Final = 0.01
_SAME: Final = 1.0
"""Seconds within which two moments are the same."""
_MOST, _FEWEST_BEYOND = 0.3, 0.01
"""How many of the newest starts may lie beyond one end of an interval, at most and at least."""
_FURTHEST, _FURTHER = -1.0, 5.0
"""Where that is not far enough, still fewer may: each start that is missing moves the end so much further, in
logarithms, and all together no more than a hundred times."""
_LATEST: Final = 10 * 365 * 86_400.0
_BASE: Final = 60.0
"""Seconds that are added to waits before they are compared: being off by a minute means little."""


class Interval(NamedTuple):
    """Seconds from now between which a job is expected to start."""

    low: float
    high: float


class StartForecast(NamedTuple):
    """What a job was told: it starts so many seconds after the moment at which that was said."""

    queue: str
    uid: str
    made: float
    expected: float
    occasion: int
    interval: Interval | None


class _Error(NamedTuple):
    """How far off a forecast was, in logarithms."""

    queue: str
    occasion: int
    off: float


class _End:
    """One end of the intervals: how many starts may lie beyond it. Mutable."""

    def __init__(self) -> None:
        self._beyond = (1.0 - WANTED) / 2

    def learn(self, *, beyond: bool) -> None:
        """Take in whether a start lay beyond this end."""
        changed = self._beyond + _STEP * ((1.0 - WANTED) / 2 - beyond)
        self._beyond = min(max(changed, _FURTHEST), _MOST)

    def among(self, errors: Sequence[float]) -> float:
        """Return where this end is, given how far off others were, from its side on: negative ones lie beyond it."""
        share = max(self._beyond, _FEWEST_BEYOND)
        return _quantile(errors, share) - _FURTHER * (share - self._beyond)


class Forecasts:
    """Forecasts that were made, and how they came out. Mutable. ``moment`` is in seconds of any one clock."""

    def __init__(self) -> None:
        self._open: dict[object, StartForecast] = {}
        self._errors: deque[_Error] = deque(maxlen=_KEPT)
        self._occasions: dict[str, tuple[int, float]] = {}
        """The newest of each queue, and when a job of it was told its start last."""
        self._begin, self._end = _End(), _End()
        self._latest: list[tuple[float, str]] = []
        """When each interval ends that was claimed, a heap, and whose it is."""
        self._claimed: set[str] = set()
        """Jobs that wait and were told an interval."""
        self._late: set[str] = set()
        """Those of them whose interval has ended."""
        self.judged = 0
        """How many jobs have started that were told an interval."""
        self.inside = 0
        """How many of them started inside it."""

    def interval(self, queue: str, expected: float) -> Interval | None:
        """Return when a job that is expected to start in so many seconds will; ``None``: too little is known."""
        own = [error for error in self._errors if error.queue == queue]
        known = own if _are_enough(own, _OF_QUEUE) else self._errors
        if not _are_enough(known, FEWEST):
            return None
        errors = sorted(error.off for error in known)
        low, high = self._begin.among(errors), -self._end.among([-off for off in reversed(errors)])
        base = expected + _BASE
        begins, ends = (min(max(base * math.exp(each) - _BASE, 0.0), _LATEST) for each in (low, high))
        return Interval(begins, ends)

    def made(self, key: object, uid: str, queue: str, moment: float, expected: float) -> None:
        """Note that a job waits for a start that is expected in so many seconds; only its first forecast is judged."""
        if self.of(key, uid) is None:
            if (another := self._open.get(key)) is not None:
                self._settled(another.uid)
            occasion = self._occasion(queue, moment)
            interval = self.interval(queue, expected)
            made = self._open[key] = StartForecast(queue, uid, moment, expected, occasion, interval)
            if made.interval is not None:
                heapq.heappush(self._latest, (moment + made.interval.high + _SAME, uid))
                self._claimed.add(uid)

    def _occasion(self, queue: str, moment: float) -> int:
        number, last = self._occasions.get(queue, (0, -math.inf))
        number += moment - last > _TOGETHER
        self._occasions[queue] = (number, moment)
        return number

    def of(self, key: object, uid: str) -> StartForecast | None:
        """Return what a job that waits was told first."""
        known = self._open.get(key)
        return known if known is not None and known.uid == uid else None

    def came_out(self, key: object, moment: float) -> None:
        """Judge the forecast of a job that has started."""
        forecast = self._open.pop(key, None)
        if forecast is None:
            return
        waited = max(moment - forecast.made, 0.0)
        off = math.log((waited + _BASE) / (forecast.expected + _BASE))
        self._errors.append(_Error(forecast.queue, forecast.occasion, off))
        if forecast.interval is not None:
            early, late = waited < forecast.interval.low - _SAME, waited > forecast.interval.high + _SAME
            self.judged += 1
            self.inside += not early and not late
            self._begin.learn(beyond=early)
            if forecast.uid not in self._late:
                self._end.learn(beyond=late)
            self._settled(forecast.uid)

    def at(self, moment: float) -> None:
        """Learn from jobs that still wait though their interval has ended: the longest waits would be learned last."""
        while self._latest and self._latest[0][0] < moment:
            _, uid = heapq.heappop(self._latest)
            if uid in self._claimed and uid not in self._late:
                self._late.add(uid)
                self._end.learn(beyond=True)

    def _settled(self, uid: str) -> None:
        self._claimed.discard(uid)
        self._late.discard(uid)

    def keep(self, waiting: Container[object]) -> None:
        """Drop the forecasts of jobs that will not start: they do not wait any more."""
        for key in [key for key in self._open if key not in waiting]:
            self._settled(self._open.pop(key).uid)


def _are_enough(errors: Collection[_Error], fewest: int) -> bool:
    return len(errors) >= fewest and len({(error.queue, error.occasion) for error in errors}) >= OCCASIONS


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(max(math.ceil(share * (len(ordered) + 1)) - 1, 0), len(ordered) - 1)]

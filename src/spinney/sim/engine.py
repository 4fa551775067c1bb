"""The engine of every simulation on virtual time: events, and a cycle of the scheduler after each that may matter.

Time jumps from event to event. :class:`~spinney.sim.Cluster` and the replay of traces are faces of the engine: they say
what happens at an event and what a cycle does. A cycle that asks for another has one at the same moment; one that names
a moment at which time alone may change its mind (``session.wake_at``) has one then, as in production.
"""

import gc
import heapq
import itertools
import math
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from spinney.runtime import Clock, InlineExecutor, Runtime, collection_held_off

EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
_MOST_CYCLES: Final = 50
"""Cycles at one moment; what is evicted and placed in turns for longer waits for the next event."""
_MOST_WAKES: Final = 2000
"""Cycles in a row for the sake of time alone, nothing else being due: then a run without an end has one."""
_SESSIONS_KEPT: Final = 64
"""Part of a session is garbage, in loops that only the collector finds: it is called after so many."""
_LAST: Final = (math.inf,)
"""Cycles come after everything else that is due at their moment."""


class SteppedClock(Clock):
    """A clock that stands still until it is moved. Mutable."""

    def __init__(self, start: datetime = EPOCH) -> None:
        self._now = start
        self._seconds = (start - EPOCH).total_seconds()

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        """Return the seconds since :data:`EPOCH`."""
        return self._seconds

    def move_to(self, moment: datetime) -> None:
        """Let time pass until ``moment``."""
        if moment > self._now:
            self._now = moment
            self._seconds = (moment - EPOCH).total_seconds()


class Cycled(NamedTuple):
    """What follows from a cycle: another at the same moment, or one when time alone may change a decision."""

    again: bool
    next_moment: datetime | None = None


class Engine:
    """What is due, and the cycles that follow it. Mutable. Moments are seconds since :data:`EPOCH`.

    ``cycle`` opens a session and carries out what it decides. A cycle follows each event that wants one: at once, or at
    the next full period if cycles are ``every`` so many seconds.
    """

    def __init__(
        self, cycle: Callable[[], Cycled], *, start: datetime = EPOCH, seed: int = 0, every: float = 0.0
    ) -> None:
        self.clock = SteppedClock(start)
        self.runtime = Runtime(self.clock, random.Random(seed), InlineExecutor())
        self.now = self.clock.monotonic()
        """The moment of the newest event, exactly; the clock counts whole microseconds."""
        self._cycle = cycle
        self._every = every
        self._numbers = itertools.count()
        self._due: list[tuple[float, tuple[float, ...], int]] = []
        self._events: dict[int, Callable[[], bool]] = {}
        """What happens, by number; what was cancelled is not there any more."""
        self._planned = math.inf, -1
        """When the next cycle is for which nothing has to happen, and its number."""
        self._sessions = 0

    def at(self, moment: float, event: Callable[[], bool], order: tuple[float, ...] = ()) -> int:
        """Have something happen, which says whether it wants a cycle; return its number.

        What is due at the same moment happens by its ``order``, and then as it was asked for.
        """
        number = next(self._numbers)
        self._events[number] = event
        heapq.heappush(self._due, (moment, order, number))
        return number

    def cancel(self, number: int) -> None:
        """Have an event not happen after all."""
        self._events.pop(number, None)

    def run(self, until: float = math.inf, passed: Callable[[], None] = lambda: None) -> None:
        """Let happen all that is due by then; ``passed`` is called after each moment."""
        wakes = 0
        with collection_held_off():
            while (moment := self._next_moment()) is not None and moment <= until:
                wakes = wakes + 1 if self._events.keys() == {self._planned[1]} else 0
                if wakes > _MOST_WAKES and until == math.inf:
                    break
                self._move_to(moment)
                if self._pass():
                    self.follow()
                passed()
        if until < math.inf:
            self._move_to(until)

    def _move_to(self, moment: float) -> None:
        self.now = moment
        self.clock.move_to(EPOCH + timedelta(seconds=moment))

    def _next_moment(self) -> float | None:
        while self._due and self._due[0][-1] not in self._events:
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else None

    def _pass(self) -> bool:
        """Let everything happen that is due; return whether a cycle is wanted."""
        wanted = False
        while self._due and self._due[0][0] <= self.now:
            event = self._events.pop(heapq.heappop(self._due)[-1], None)
            wanted |= event is not None and event()
        return wanted

    def follow(self) -> None:
        """Run cycles until nothing more follows at this moment; or later, if it is not the time.

        An event that must have its cycle before the next one of the same moment calls this and wants no other.
        """
        moment = self.now if self._every <= 0 else -(-self.now // self._every) * self._every
        if moment > self.now:
            self._plan(moment)
            return
        cycled = Cycled(again=True)
        for _ in range(_MOST_CYCLES):
            cycled = self._cycle()
            self._sessions += 1
            if self._sessions % _SESSIONS_KEPT == 0:
                gc.collect(1)
            if not cycled.again:
                break
        if cycled.next_moment is not None:
            self._plan((cycled.next_moment - EPOCH).total_seconds())

    def _plan(self, moment: float) -> None:
        """Have a cycle run then, or earlier if that was planned before."""
        planned, number = self._planned
        if number not in self._events or moment < planned:
            self.cancel(number)
            self._planned = moment, self.at(moment, lambda: True, _LAST)

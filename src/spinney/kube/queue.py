"""The work queue of a controller.

A key is in the queue at most once however often it is added, and is never handed out while it is being worked on: what
is added meanwhile is handed out again after ``done``. So one key's reconciles never overlap and the last one always
runs after the last change. Keys are handed out round robin over their namespaces, first in first out inside each, so
that one busy tenant does not delay the others.
"""

import asyncio
from collections import OrderedDict
from enum import Enum
from typing import Final

import msgspec

from spinney.kube.keys import Key
from spinney.kube.retrying import exponential
from spinney.runtime import Runtime


class Origin(Enum):
    """Who asked for a reconcile."""

    EVENT = "event"
    RESYNC = "resync"


class QueueClosed(Exception):
    """The queue was shut down; no more keys are handed out."""


class Work(msgspec.Struct, frozen=True):
    """A key handed out, who asked for it, and when it was first added (monotonic seconds)."""

    key: Key
    origin: Origin
    added: float


LONGEST_DELAY_SECONDS: Final = 300.0
"""After which what keeps failing is tried again at the latest."""


class WorkQueue:
    """Keys to be reconciled. Mutable; used from one event loop."""

    def __init__(
        self, runtime: Runtime, *, first_delay: float = 0.01, longest_delay: float = LONGEST_DELAY_SECONDS
    ) -> None:
        self._runtime = runtime
        self._first_delay = first_delay
        self._longest_delay = longest_delay
        self._lanes: OrderedDict[str, OrderedDict[Key, Work]] = OrderedDict()
        self._waiting = 0
        self._active: dict[Key, Work | None] = {}  # in work -> what was added meanwhile
        self._timers: dict[Key, tuple[float, asyncio.TimerHandle]] = {}
        self._failures: dict[Key, int] = {}
        self._getters: OrderedDict[asyncio.Future[None], None] = OrderedDict()
        self._closed = False

    def __len__(self) -> int:
        """Return how many keys wait to be handed out now."""
        return self._waiting

    @property
    def idle(self) -> bool:
        """Tell whether nothing waits and nothing is in work; delayed keys do not count."""
        return self._waiting == 0 and not self._active

    def is_pending(self, key: Key) -> bool:
        """Tell whether the key waits, is in work, is delayed or is backing off."""
        return key in self._active or key in self._timers or key in self._lanes.get(key.namespace, ())

    def add(self, key: Key, origin: Origin = Origin.EVENT) -> None:
        """Have ``key`` handed out as soon as its turn comes."""
        if self._closed:
            return
        if key in self._active:
            self._active[key] = self._merged(self._active[key], key, origin)
            return
        lane = self._lanes.setdefault(key.namespace, OrderedDict())
        if key not in lane:
            self._waiting += 1
            self._wake()
        lane[key] = self._merged(lane.get(key), key, origin)

    def add_after(self, key: Key, seconds: float) -> None:
        """Add ``key`` after a delay; of several delays of one key the one that ends first holds."""
        if self._closed:
            return
        if seconds <= 0:
            self.add(key)
            return
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds
        if (timer := self._timers.get(key)) is not None:
            if timer[0] <= due:
                return
            timer[1].cancel()
        self._timers[key] = (due, loop.call_at(due, self._ring, key))

    def add_backing_off(self, key: Key) -> float:
        """Add ``key`` after a delay that doubles with each call until :meth:`forget`; returns the delay."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        delay = exponential(failures, first=self._first_delay, longest=self._longest_delay)
        delay *= 1 + 0.1 * self._runtime.random.random()
        self.add_after(key, delay)
        return delay

    def forget(self, key: Key) -> None:
        """Start the key's back-off afresh: it succeeded."""
        self._failures.pop(key, None)

    def failures(self, key: Key) -> int:
        """Return how often the key failed in a row."""
        return self._failures.get(key, 0)

    async def get(self) -> Work:
        """Wait for the next key; the caller must call :meth:`done` with it. Raises ``QueueClosed`` after shut-down."""
        while not self._waiting:
            if self._closed:
                raise QueueClosed
            await self._arrived()
        if self._closed:
            raise QueueClosed
        namespace, lane = self._lanes.popitem(last=False)
        key, work = lane.popitem(last=False)
        if lane:
            self._lanes[namespace] = lane
        self._waiting -= 1
        self._active[key] = None
        return work

    def done(self, key: Key) -> Origin | None:
        """Finish work on ``key``; if it was added meanwhile it waits again, and who asked for that is returned."""
        again = self._active.pop(key)
        if again is None or self._closed:
            return None
        self.add(key, again.origin)
        return again.origin

    def shut_down(self) -> None:
        """Hand out nothing more and drop what waits; tasks that wait in :meth:`get` get ``None``."""
        self._closed = True
        for _, timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        for getter in self._getters:
            if not getter.done():
                getter.set_result(None)

    def _ring(self, key: Key) -> None:
        del self._timers[key]
        self.add(key)

    def _merged(self, present: Work | None, key: Key, origin: Origin) -> Work:
        if present is None:
            return Work(key, origin, self._runtime.clock.monotonic())
        if present.origin is Origin.RESYNC and origin is Origin.EVENT:
            return Work(key, origin, present.added)
        return present

    def _wake(self) -> None:
        for getter in self._getters:
            if not getter.done():
                getter.set_result(None)
                return

    async def _arrived(self) -> None:
        getter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._getters[getter] = None
        try:
            await getter
        except asyncio.CancelledError:
            if getter.done() and not getter.cancelled() and self._waiting:
                del self._getters[getter]
                self._wake()  # the wake-up came just as this waiter was cancelled: pass it on
            raise
        finally:
            self._getters.pop(getter, None)

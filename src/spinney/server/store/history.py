"""What happened to a collection, as far back as it is kept.

A watcher is a cursor on this history, not a buffer of its own: writing an event costs the same however many watch, a
slow watcher holds up nobody and takes no memory. When the ring has overtaken a cursor, that watcher is told to list
again (:class:`TooOld`), as Kubernetes does after compaction.
"""

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from itertools import takewhile
from typing import Literal

import msgspec

from spinney.server.store.record import Record

EventType = Literal["ADDED", "MODIFIED", "DELETED"]


class TooOld(Exception):
    """The revision asked for is no longer in the history."""

    def __init__(self, asked: int, oldest: int) -> None:
        super().__init__(f"too old resource version: {asked} ({oldest})")


_REMEMBERED = 512
"""How many lines of a watch are remembered: twice what one watcher is sent at a time."""


class StoreEvent(msgspec.Struct, frozen=True, gc=False):
    """One change: the object after it (before it, for a deletion, with the deletion's revision) and before it."""

    type: EventType
    record: Record
    previous: Record | None

    @property
    def revision(self) -> int:
        """The revision this change made."""
        return self.record.revision


class WatchHistory:
    """A bounded run of events; mutable, owned by its collection."""

    def __init__(self, limit: int, revision: int) -> None:
        self._events: deque[StoreEvent] = deque()
        self._limit = limit
        self._first = 0  # sequence number of the oldest event kept
        self._compacted = revision  # events up to this revision are gone
        self._waiters: list[asyncio.Future[None]] = []
        self._sent: dict[tuple[EventType, int], bytes] = {}

    @property
    def compacted(self) -> int:
        """The newest revision whose event is no longer kept."""
        return self._compacted

    @property
    def end(self) -> int:
        """The cursor behind the newest event."""
        return self._first + len(self._events)

    def append(self, event: StoreEvent) -> None:
        """Add an event, let go of the oldest one if the ring is full, and wake who waits."""
        self._events.append(event)
        if len(self._events) > self._limit:
            self._compacted = self._events.popleft().revision
            self._first += 1
        if self._waiters:
            waiters, self._waiters = self._waiters, []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)

    def compact(self, revision: int) -> None:
        """Let go of every event up to ``revision``."""
        while self._events and self._events[0].revision <= revision:
            self._events.popleft()
            self._first += 1
        self._compacted = max(self._compacted, revision)

    def restart(self, revision: int) -> None:
        """Let go of every event up to ``revision``, and of all cursors."""
        self.compact(revision)
        self._first += 1

    def cursor_after(self, revision: int) -> int:
        """Return the cursor of the first event after ``revision``; raise :class:`TooOld` if some are gone."""
        if revision < self._compacted:
            raise TooOld(revision, self._compacted)
        return self._first + bisect_right(self._events, revision, key=lambda event: event.revision)

    def read(self, cursor: int, limit: int) -> list[StoreEvent]:
        """Return up to ``limit`` events from ``cursor`` on; raise :class:`TooOld` if the ring has overtaken it."""
        offset = cursor - self._first
        if offset < 0:
            raise TooOld(0, self._compacted)
        count = min(limit, len(self._events) - offset)
        return [self._events[offset + index] for index in range(count)]

    def line(self, event: EventType, record: Record, make: Callable[[EventType, Record], bytes]) -> bytes:
        """Return the line that tells watchers of a record of this history; all who watch now are given the same one."""
        found = self._sent.get((event, record.revision))
        if found is None:
            found = self._sent[event, record.revision] = make(event, record)
            if len(self._sent) > _REMEMBERED:
                del self._sent[next(iter(self._sent))]
        return found

    def newest_first(self, after: int) -> list[StoreEvent]:
        """Return the events after ``after``, newest first; raise :class:`TooOld` if some are gone."""
        if after < self._compacted:
            raise TooOld(after, self._compacted)
        return list(takewhile(lambda event: event.revision > after, reversed(self._events)))

    def changed(self) -> asyncio.Future[None]:
        """Return a future that is done at the next event."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        return waiter

    def let_go(self, waiter: asyncio.Future[None]) -> None:
        """Have a future from :meth:`changed` be done although nothing happened."""
        if not waiter.done():
            waiter.set_result(None)
            self._waiters = [other for other in self._waiters if other is not waiter]

    def forget(self, waiter: asyncio.Future[None]) -> None:
        """Stop a future from :meth:`changed` that nobody waits for any more."""
        if not waiter.done():
            waiter.cancel()
            self._waiters = [other for other in self._waiters if other is not waiter]

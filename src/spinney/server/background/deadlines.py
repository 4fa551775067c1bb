"""What is to be done a fixed time after it was asked for: one thing after the other, such as forgetting old events."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

from spinney.api.keys import Key
from spinney.runtime import Clock
from spinney.server.operations.context import Context
from spinney.server.store import ChangeNotKept, Collection, StoreEvent

Item = TypeVar("Item")

_PAUSE: Final = 1.0  # seconds before what could not be kept is tried again


class Deadlines(Generic[Item]):
    """Items in the order of their time, each kept until it has been dealt with. Mutable, runs as one task."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._due: deque[tuple[float, Item]] = deque()
        self._waiter: asyncio.Future[None] | None = None

    def __iter__(self) -> Iterator[Item]:
        return (item for _, item in self._due)

    def add(self, item: Item) -> None:
        """Have an item dealt with when its time has come."""
        self._due.append((self._clock.monotonic() + self._seconds, item))
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def run(self, deal_with: Callable[[Item], None]) -> None:
        """Deal with items until cancelled."""
        while True:
            if not self._due:
                self._waiter = asyncio.get_running_loop().create_future()
                await self._waiter
                continue
            due, item = self._due[0]
            wait = due - self._clock.monotonic()
            if wait > 0:
                await self._clock.sleep(wait)
                continue
            try:
                deal_with(item)
            except ChangeNotKept:  # the disk is full, which every write answers
                await self._clock.sleep(_PAUSE)
                continue
            self._due.popleft()


_EVENTS = "events"


class EventExpiry:
    """Deletes events whose time is over; mutable, runs as one task."""

    def __init__(self, context: Context) -> None:
        self._context = context
        ttl = context.options.event_ttl.total_seconds()
        self._written: Deadlines[tuple[Key, int]] = Deadlines(context.runtime.clock, ttl)
        context.store.listen(self._on_write)

    async def run(self) -> None:
        """Expire events until cancelled."""
        await self._written.run(self._expire)

    def _expire(self, written: tuple[Key, int]) -> None:
        key, revision = written
        record = self._context.store.get(_EVENTS, key)
        if record is not None and record.revision == revision:
            self._context.store.remove(_EVENTS, key, record.decode())

    def _on_write(self, collection: Collection, event: StoreEvent) -> None:
        if collection.name == _EVENTS and event.type != "DELETED":
            self._written.add((event.record.key, event.record.revision))

"""Events are forgotten an hour after they were last written."""

import asyncio
from collections import deque

from spinney.api.keys import Key
from spinney.server.operations.context import Context
from spinney.server.store import ChangeNotKept, Collection, StoreEvent

_EVENTS = "events"
_PAUSE = 1.0  # seconds before an expiry that could not be kept is tried again


class EventExpiry:
    """Deletes events whose time is over; mutable, runs as one task."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._ttl = context.options.event_ttl.total_seconds()
        self._due: deque[tuple[float, Key, int]] = deque()  # in the order of writing, which is the order of expiry
        self._waiter: asyncio.Future[None] | None = None
        context.store.listen(self._on_write)

    async def run(self) -> None:
        """Expire events until cancelled."""
        clock = self._context.runtime.clock
        while True:
            if not self._due:
                self._waiter = asyncio.get_running_loop().create_future()
                await self._waiter
                continue
            due, key, revision = self._due[0]
            wait = due - clock.monotonic()
            if wait > 0:
                await clock.sleep(wait)
                continue
            try:
                self._expire(key, revision)
            except ChangeNotKept:  # the disk is full, which every write answers
                await clock.sleep(_PAUSE)
                continue
            self._due.popleft()

    def _expire(self, key: Key, revision: int) -> None:
        collection = self._context.store.collection(_EVENTS)
        record = collection.get(key) if collection else None
        if collection is not None and record is not None and record.revision == revision:
            self._context.store.remove(collection, key, record.decode())

    def _on_write(self, collection: Collection, event: StoreEvent) -> None:
        if collection.name != _EVENTS or event.type == "DELETED":
            return
        due = self._context.runtime.clock.monotonic() + self._ttl
        self._due.append((due, event.record.key, event.record.revision))
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

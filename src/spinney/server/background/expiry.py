"""Events are forgotten an hour after they were last written."""

from spinney.api.keys import Key
from spinney.server.background.deadlines import Deadlines
from spinney.server.operations.context import Context
from spinney.server.store import Collection, StoreEvent

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

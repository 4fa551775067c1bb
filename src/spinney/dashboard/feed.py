"""What happened, as server-sent events: each is encoded once, and viewers that were away get what they missed.

An event's id is ``EPOCH-REVISION``. A viewer who comes back with the last id it saw is sent everything since. The feed
keeps a bounded number of events; one who was away for longer, or comes from another epoch, is told to read the state
afresh.
"""

import asyncio
from collections import deque
from typing import Final

from spinney.runtime.numbers import whole_number_in

KEPT: Final = 1024
KEPT_BYTES: Final = 16 * 1024 * 1024


class Feed:
    """The events of one view. Mutable: it grows at one end and forgets at the other."""

    def __init__(self, epoch: str, *, kept: int = KEPT, kept_bytes: int = KEPT_BYTES) -> None:
        self._epoch = epoch
        self._revision = 0
        self._events: deque[bytes] = deque()
        self._kept, self._kept_bytes, self._size = kept, kept_bytes, 0
        self._next: asyncio.Future[None] | None = None
        self._ended = False

    @property
    def id(self) -> str:
        """Return the id of the last event."""
        return f"{self._epoch}-{self._revision}"

    def publish(self, data: bytes) -> None:
        """Add an event; ``data`` is one line of JSON."""
        self._revision += 1
        event = framed("change", data, id=self.id)
        self._events.append(event)
        self._size += len(event)
        while len(self._events) > self._kept or (self._size > self._kept_bytes and len(self._events) > 1):
            self._size -= len(self._events.popleft())
        self._wake()

    def end(self) -> None:
        """Say that nothing more will come: viewers that wait look again, and find another feed in its place."""
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        if self._next is not None:
            self._next.set_result(None)
            self._next = None

    def since(self, last: str) -> tuple[list[bytes], str] | None:
        """Return the events after the one with id ``last`` and the id of the newest; ``None`` if some are forgotten."""
        epoch, _, text = last.rpartition("-")
        revision = whole_number_in(text)
        if epoch != self._epoch or revision is None:
            return None
        missed = self._revision - revision
        if not 0 <= missed <= len(self._events):
            return None
        found = [self._events[place] for place in range(len(self._events) - missed, len(self._events))]
        return found, self.id

    async def more(self, last: str, *, within: float) -> bool:
        """Wait until there is an event after ``last``; False if there is none within so many seconds."""
        if last != self.id or self._ended:
            return True
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
        done, _ = await asyncio.wait({self._next}, timeout=within)
        return bool(done)


def framed(kind: str, data: bytes = b"{}", *, id: str = "") -> bytes:  # noqa: A002 - the protocol's word
    """Return one event as it goes over the wire."""
    name = f"id: {id}\n" if id else ""
    return f"{name}event: {kind}\ndata: ".encode() + data + b"\n\n"

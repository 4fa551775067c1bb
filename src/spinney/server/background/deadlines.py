"""What is to be done a fixed time after it was asked for, one thing after the other."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

from spinney.runtime import Clock
from spinney.server.store import ChangeNotKept

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

"""Background work: what writes ask for is noted, each thing at most once, and worked off in order by one task."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from typing import Final, Generic, NoReturn, TypeVar

import structlog

from spinney.runtime import Clock
from spinney.server.operations.context import Context
from spinney.server.store import ChangeNotKept, Collection, StoreEvent

log = structlog.get_logger()

T = TypeVar("T", bound=Hashable)
_TURN: Final = 64  # items worked on before other tasks get a turn
_PAUSE: Final = 1.0  # seconds before a change that could not be kept is tried again


class KeyQueue(Generic[T]):
    """A de-duplicating queue with one reader; mutable. Noting is cheap enough for a store listener."""

    def __init__(self) -> None:
        self._items: dict[T, None] = {}
        self._waiter: asyncio.Future[None] | None = None

    def note(self, item: T) -> None:
        """Add an item unless it is waiting already."""
        self._items[item] = None
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def next(self) -> T | None:
        """Take the oldest item if there is one."""
        item = next(iter(self._items), None)
        if item is not None:
            del self._items[item]
        return item

    async def work_off(self, work: Callable[[T], None], clock: Clock) -> NoReturn:
        """Do ``work`` for every item until cancelled; what could not be kept is tried again until it is."""
        taken = 0
        while True:
            item = self.next()
            if item is None:
                self._waiter = asyncio.get_running_loop().create_future()
                await self._waiter
                continue
            try:
                work(item)
            except ChangeNotKept as error:
                log.warning("background work of the embedded cluster waits", item=str(item), reason=str(error))
                self.note(item)
                await clock.sleep(_PAUSE)
            except Exception:
                log.exception("background work of the embedded cluster failed, and goes on", item=str(item))
            taken += 1
            if taken % _TURN == 0:
                await asyncio.sleep(0)


class Worker(ABC, Generic[T]):
    """One kind of background work; mutable, runs as one task."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._notes: KeyQueue[T] = KeyQueue()
        self._store.listen(self._on_write)

    async def run(self) -> None:
        """Work until cancelled."""
        await self._notes.work_off(self._work, self._context.runtime.clock)

    @abstractmethod
    def _on_write(self, collection: Collection, event: StoreEvent) -> None:
        """Note what a write asks for."""

    @abstractmethod
    def _work(self, item: T) -> None:
        """Do what was noted."""

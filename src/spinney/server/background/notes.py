"""A queue of things to look at, each at most once, in the order they came up."""

import asyncio
from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)

_TURN = 64  # items worked on before other tasks get a turn


class KeyQueue(Generic[T]):
    """A de-duplicating queue with one reader; mutable. Noting is cheap enough for a store listener."""

    def __init__(self) -> None:
        self._items: dict[T, None] = {}
        self._waiter: asyncio.Future[None] | None = None
        self._taken = 0

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

    async def take(self) -> T:
        """Wait for an item and take the oldest."""
        self._taken += 1
        if self._taken % _TURN == 0:
            await asyncio.sleep(0)
        while not self._items:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        item = next(iter(self._items))
        del self._items[item]
        return item

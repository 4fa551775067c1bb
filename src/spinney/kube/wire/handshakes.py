"""Connections that are being made, none of which is cut off half-way.

asyncio may never close the socket of a connection that is cancelled before its TLS handshake is over. So a caller that
no longer waits for one does not cancel it: it is handed over when it comes.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from spinney.kube.errors import ConnectionRefused
from spinney.runtime.tasks import end

CLOSED_HERE = "no connection: it was closed here"
SETTLING_SECONDS = 1.0

T = TypeVar("T")


class Handshakes(Generic[T]):
    """What begins with a handshake and is under way. Mutable."""

    def __init__(self, unwanted: Callable[[T], None]) -> None:
        """Begin without any; ``unwanted`` is called with what comes when nobody waits for it any more."""
        self._unwanted = unwanted
        self._under_way: set[asyncio.Task[T]] = set()

    async def wait_for(self, making: Coroutine[Any, Any, T]) -> T:
        """Return what is made, unless the wait is cancelled before."""
        task = asyncio.create_task(making)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        try:
            await asyncio.wait((task,))  # unlike a shield it logs nothing of what fails when nobody waits any more
        except asyncio.CancelledError:
            task.add_done_callback(self._hand_over)
            raise
        if task.cancelled():
            raise ConnectionRefused(CLOSED_HERE)
        return task.result()

    async def settle(self) -> None:
        """Give what is under way a moment to come about; what does not is cancelled."""
        if self._under_way:
            _, late = await asyncio.wait(self._under_way, timeout=SETTLING_SECONDS)
            await end(*late)

    def _hand_over(self, task: asyncio.Task[T]) -> None:
        if not task.cancelled() and task.exception() is None:  # without an error nothing is left to do
            self._unwanted(task.result())

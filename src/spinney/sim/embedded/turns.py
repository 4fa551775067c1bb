"""Turns: how many requests of a cluster's own parts are answered before the event loop looks at its sockets again.

Operator, schedulers and nodes of an embedded cluster may have hundreds of writes under way. Answered in one go, they
would let an outside client wait for a fifth of a second at each step of a connection. The order stays that of asking.
"""

import asyncio
from collections import deque

AT_ONCE = 12
"""Requests that begin in one turn of the loop: together they take a hundredth of a second."""


class RequestTurns:
    """Hands out turns to the tasks of one event loop. Mutable: knows who waits."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._at_once = at_once
        self._taken = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def taken(self) -> None:
        """Return in the next turn of the loop, or in a later one if that has enough to do."""
        if self._taken < self._at_once and not self._waiting:
            self._take(asyncio.get_running_loop())
            await asyncio.sleep(0)
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        await turn

    def _take(self, loop: asyncio.AbstractEventLoop) -> None:
        self._taken += 1
        if self._taken == 1:
            loop.call_soon(self._next, loop)

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        self._taken = 0
        while self._waiting and self._taken < self._at_once:
            turn = self._waiting.popleft()
            if not turn.done():  # the task that waited for it may have been cancelled
                turn.set_result(None)
                self._take(loop)

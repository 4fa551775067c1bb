"""The client's transport without sockets: a call into the embedded server in the same process.

Every request lets other tasks run once, so that a loop of writes cannot starve the watchers that follow it, and so
that what happens under virtual time happens in one order.

Operator, schedulers and nodes of an embedded cluster may have hundreds of writes under way. Answered in one go, they
would let an outside client wait for a fifth of a second at each step of a connection. Transports that share
:class:`RequestTurns` let sockets have theirs; the order stays that of asking.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Protocol

from spinney.kube.errors import ConnectionRefused, ConnectionTimedOut
from spinney.kube.transport import Request, Response
from spinney.server import Request as ServerRequest
from spinney.server import Response as ServerResponse

AT_ONCE = 12
"""Requests that begin in one turn of the loop: together they take a hundredth of a second."""


class RequestTurns:
    """Bounds the requests that are answered before the event loop looks at its sockets. Mutable: knows who waits."""

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


class Answering(Protocol):
    """What answers requests: an :class:`~spinney.server.ApiServer`, or what stands in front of one."""

    async def handle(self, request: ServerRequest) -> ServerResponse:
        """Return the answer to a request."""
        ...


class InProcessTransport:
    """Carries a client's requests to a server in this process; fills ``kube.transport.Transport``."""

    def __init__(self, answering: Answering, turns: RequestTurns | None = None) -> None:
        self._server = answering
        self._turn = turns.taken if turns is not None else partial(asyncio.sleep, 0)
        self._closed = False

    async def request(self, request: Request) -> Response:
        """Send one request and return its complete answer, whatever its status."""
        await self._turn()
        asked = self._asked(request)
        try:
            async with asyncio.timeout(request.timeout):
                answer = await self._server.handle(asked)
                if isinstance(answer.body, bytes):
                    return Response(answer.status, answer.headers, answer.body)
                return Response(answer.status, answer.headers, b"".join([chunk async for chunk in answer.body]))
        except TimeoutError as error:
            raise ConnectionTimedOut(f"{request}: no complete answer within {request.timeout} seconds") from error

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator["InProcessStream"]:
        """Send one request and hand out its answer as it arrives."""
        await self._turn()
        asked = self._asked(request)
        try:
            async with asyncio.timeout(request.timeout):
                answer = await self._server.handle(asked)
        except TimeoutError as error:
            raise ConnectionTimedOut(f"{request}: no answer within {request.timeout} seconds") from error
        stream = InProcessStream(answer.status, answer.headers, answer.body)
        try:
            yield stream
        finally:
            await stream.close()

    async def close(self) -> None:
        """Refuse further requests; streams end with their contexts."""
        self._closed = True

    def _asked(self, request: Request) -> ServerRequest:
        if self._closed:
            raise ConnectionRefused(f"{request}: the transport is closed")
        headers = {name.lower(): value for name, value in request.headers.items()}
        return ServerRequest(request.method, request.path, request.query, headers, request.body or b"")


class InProcessStream:
    """An answer that arrives bit by bit."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes | AsyncIterator[bytes]) -> None:
        self.status = status
        self.headers = headers
        self._body = body

    async def body(self) -> bytes:
        """Read the rest of the body at once."""
        return b"".join([chunk async for chunk in self])

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Iterate over the chunks of the body until the server ends it."""
        return _once(self._body) if isinstance(self._body, bytes) else self._body

    async def close(self) -> None:
        """Stop the server's side of the stream."""
        if not isinstance(self._body, bytes):
            closing = getattr(self._body, "aclose", None)
            if closing is not None:
                await closing()


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body

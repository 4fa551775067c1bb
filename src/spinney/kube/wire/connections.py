"""A lean HTTP/1.1 client for requests to one server over kept-alive connections, and nothing else.

A scheduler that binds a thousand pods a second sends two thousand small requests a second. A general HTTP library
spends several times as much on each of them (redirects, cookies, tracing, URL objects) as there is to do; here a
request is one write and an answer usually one read. (docs/performance/mechanisms.md has the figures.)

A connection carries one request at a time; that of a stream (:mod:`.streams`) carries no other after it.
So a watch begins on the connection that the list before it has left. One that is idle for a while is closed before the
server would do so, for a request that meets a closing connection may or may not have been acted on. If anything goes
wrong on a connection, or its request is given up, it is closed and not used again.
"""

import asyncio
import re
import ssl
from collections import deque
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import quote, urlencode, urlsplit

from spinney.kube.errors import ConnectionFailed, ConnectionRefused, ConnectionTimedOut
from spinney.kube.transport import Request, Response
from spinney.kube.wire.handshakes import Handshakes
from spinney.kube.wire.responses import MalformedResponse, ResponseReader
from spinney.kube.wire.streams import ResponseStream

CONNECT_SECONDS = 10.0
IDLE_SECONDS = 60.0  # an API server closes an idle connection after 90

_LINE_BREAK = re.compile(r"[\r\n\0]")


class Connections:
    """Connections to one server, as many as there are requests at the same time. Mutable."""

    def __init__(self, url: str, *, context: ssl.SSLContext | None, server_name: str | None = None) -> None:
        parts = urlsplit(url)
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._prefix = parts.path.rstrip("/")
        self._authority = parts.netloc.rpartition("@")[2]
        self._context = context
        self._server_name = (server_name or self._host) if context is not None else None
        self._idle: deque[_Connection] = deque()
        self._busy: set[_Connection] = set()
        self._handshakes = Handshakes(self._keep)
        self._retired = False

    async def request(self, request: Request, headers: Iterable[tuple[str, str]]) -> Response:
        """Send one request, with these headers before its own, and return its complete answer."""
        message, deadline = self._message(request, headers), _deadline(request.timeout)
        connection = self._take() or await self._handshakes.wait_for(self._connect(request.timeout))
        self._busy.add(connection)
        timer = None if deadline is None else asyncio.get_running_loop().call_at(deadline, connection.give_up)
        try:
            answer = await connection.send(message, bodiless=request.method == "HEAD")
        except BaseException:
            connection.close()
            raise
        finally:
            self._busy.discard(connection)
            if timer is not None:
                timer.cancel()
        self._keep(connection)
        return answer

    async def begin(self, request: Request, headers: Iterable[tuple[str, str]], *, where: str) -> ResponseStream:
        """Send one request and return its answer once its head is there; ``where`` names it in later errors."""
        message, deadline = self._message(request, headers), _deadline(request.timeout)
        connection = self._take() or await self._handshakes.wait_for(self._connect(request.timeout))
        self._busy.add(connection)
        connection.closed.add_done_callback(lambda _: self._busy.discard(connection))
        stream = connection.begin(message, where)
        timer = None if deadline is None else asyncio.get_running_loop().call_at(deadline, stream.give_up)
        try:
            await stream.begun
        except BaseException:
            stream.end()
            raise
        finally:
            if timer is not None:
                timer.cancel()
        return stream

    @property
    def idle(self) -> bool:
        """Tell whether no request is under way."""
        return not self._busy

    def retire(self) -> None:
        """Close what is idle now, and every connection once its request is answered."""
        self._retired = True
        while self._idle:
            self._idle.pop().close()

    async def close(self) -> None:
        """Close every connection and wait until they are closed; requests under way fail."""
        self.retire()
        await self._handshakes.settle()
        connections = [*self._idle, *self._busy]
        self._idle.clear()
        for connection in connections:
            connection.close()
        for connection in connections:
            await connection.closed

    def _keep(self, connection: "_Connection") -> None:
        """Have a connection serve another request, if it can."""
        if connection.reusable and not self._retired:
            connection.idle_since = asyncio.get_running_loop().time()
            self._idle.append(connection)
        else:
            connection.close()

    def _take(self) -> "_Connection | None":
        """Return the connection used last, so that those a burst has left over grow idle and are closed."""
        now = asyncio.get_running_loop().time()
        while self._idle and (not self._idle[0].reusable or now - self._idle[0].idle_since > IDLE_SECONDS):
            self._idle.popleft().close()
        while self._idle:
            connection = self._idle.pop()
            if connection.reusable:
                return connection
        return None

    async def _connect(self, timeout: float | None) -> "_Connection":
        loop = asyncio.get_running_loop()
        allowed = CONNECT_SECONDS if timeout is None else min(timeout, CONNECT_SECONDS)
        try:
            async with asyncio.timeout(allowed):
                _, connection = await loop.create_connection(
                    _Connection, self._host, self._port, ssl=self._context, server_hostname=self._server_name
                )
        except TimeoutError as problem:
            raise ConnectionRefused(f"no connection within {allowed:g} s") from problem
        except (OSError, ssl.SSLError) as problem:
            raise ConnectionRefused(f"no connection: {str(problem) or type(problem).__name__}") from problem
        return connection

    def _message(self, request: Request, headers: Iterable[tuple[str, str]]) -> bytes:
        body = request.body
        target = self._prefix + _escaped(request.path)
        if request.query:
            target += "?" + _encoded(tuple(request.query.items()))
        head = f"{request.method} {target} HTTP/1.1\r\nhost: {self._authority}\r\n"
        head += _lines((*headers, *request.headers.items()))
        if body is None:
            return head.encode() + b"\r\n"
        return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


class _Connection(asyncio.Protocol):
    """One connection, with at most one request under way. Mutable."""

    __slots__ = ("_answer", "_reader", "_stream", "_transport", "closed", "idle_since", "reusable")

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.reusable = True
        self.idle_since = 0.0
        self.closed: asyncio.Future[None] = loop.create_future()
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[Response] | None = None
        self._stream: ResponseStream | None = None
        self._reader = ResponseReader()

    def send(self, message: bytes, *, bodiless: bool) -> "asyncio.Future[Response]":
        """Send a request; the result is its answer."""
        assert self._transport is not None, "a connection is handed out once it is made"
        self._reader = ResponseReader(bodiless=bodiless)
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(message)
        return self._answer

    def begin(self, message: bytes, where: str) -> ResponseStream:
        """Send the last request of this connection; its answer is read as it arrives."""
        assert self._transport is not None, "a connection is handed out once it is made"
        self.reusable = False
        self._stream = ResponseStream(self._transport, where)
        self._transport.write(message)
        return self._stream

    def give_up(self) -> None:
        """Fail the request under way because its time is up."""
        self._fail(ConnectionTimedOut("no complete answer in time"))

    def close(self) -> None:
        """Close at once."""
        self.reusable = False
        if self._transport is not None:
            self._transport.abort()

    # -- what the transport tells ------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._stream is not None:
            self._stream.feed(data)
            return
        if self._answer is None or self._answer.done():
            self.close()  # bytes that nobody asked for
            return
        try:
            answer = self._reader.feed(data)
        except MalformedResponse as problem:
            self._fail(ConnectionFailed(str(problem)))
            return
        if answer is not None:
            self.reusable = self._reader.reusable
            self._answer.set_result(answer)

    def eof_received(self) -> None:
        self.reusable = False

    def connection_lost(self, problem: Exception | None) -> None:
        self.reusable = False
        if self._stream is not None:
            self._stream.lost(problem)
        elif self._answer is not None and not self._answer.done():
            answer = self._reader.end() if problem is None else None
            if answer is not None:
                self._answer.set_result(answer)
            else:
                self._fail(ConnectionFailed(f"the connection broke: {problem or 'the server closed it'}"))
        if not self.closed.done():
            self.closed.set_result(None)

    def _fail(self, problem: Exception) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(problem)
        self.close()


def _deadline(timeout: float | None) -> float | None:
    return None if timeout is None else asyncio.get_running_loop().time() + timeout


_PLAIN_PATH = re.compile(r"[A-Za-z0-9/._:~-]*").fullmatch


def _escaped(path: str) -> str:
    return path if _PLAIN_PATH(path) else quote(path, safe="/:@!$&'()*+,;=~-._%")


@lru_cache(maxsize=64)  # a client sends the same with every request
def _lines(headers: tuple[tuple[str, str], ...]) -> str:
    for name, value in headers:
        if _LINE_BREAK.search(name) or _LINE_BREAK.search(value):
            raise ValueError(f"header {name!r} contains a line break")
    return "".join(f"{name}: {value}\r\n" for name, value in headers)


@lru_cache(maxsize=256)
def _encoded(query: tuple[tuple[str, str], ...]) -> str:
    return urlencode(query)

"""Answers that are read as they arrive, each on a connection of its own.

A watch of a busy kind brings thousands of lines a second. What has arrived between two reads is handed out at once, and
a reader that falls far behind holds the server back.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping

from spinney.kube.errors import ConnectionFailed, ConnectionTimedOut
from spinney.kube.wire.responses import MalformedResponse, ResponseReader

HELD_BACK = 1 << 20
"""Bytes that wait to be read, at which the connection is read no further."""


class ResponseStream:
    """An answer as it arrives; fills the ``StreamingResponse`` protocol. Mutable: its connection feeds it."""

    __slots__ = ("_arrival", "_ended", "_paused", "_problem", "_reader", "_transport", "_waiting", "_where", "begun")

    def __init__(self, transport: asyncio.Transport, where: str) -> None:
        self.begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when status and headers are there, or when they will never be."""
        self._transport = transport
        self._where = where
        self._reader = ResponseReader()
        self._waiting: list[bytes] = []
        self._paused = False
        self._ended = False
        self._problem: ConnectionFailed | None = None
        self._arrival: asyncio.Future[None] | None = None

    @property
    def status(self) -> int:
        """Return the HTTP status."""
        return self._head[0]

    @property
    def headers(self) -> Mapping[str, str]:
        """Return the headers, their names in lower case."""
        return self._head[1]

    @property
    def _head(self) -> tuple[int, Mapping[str, str]]:
        head = self._reader.head
        assert head is not None, "a stream is handed out once its head is there"
        return head

    async def body(self) -> bytes:
        """Read the rest of the body at once."""
        return b"".join([chunk async for chunk in self])

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            if self._waiting:
                chunk = b"".join(self._waiting)
                self._waiting.clear()
                if self._paused:
                    self._paused = False
                    self._transport.resume_reading()
                yield chunk
            elif self._problem is not None:
                raise type(self._problem)(f"{self._where}: {self._problem}") from self._problem
            elif self._ended:
                return
            else:
                self._arrival = asyncio.get_running_loop().create_future()
                await self._arrival

    def end(self) -> None:
        """End the stream and its connection at once: a farewell over TLS would wait for the server's."""
        self._transport.abort()

    # -- what the connection tells -----------------------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        """Take in the next bytes."""
        if self._ended:
            self.end()  # bytes that nobody asked for
            return
        try:
            answer = self._reader.feed(data)
            piece = self._reader.taken()
        except MalformedResponse as problem:
            self.fail(ConnectionFailed(str(problem)))
            return
        if piece:
            self._waiting.append(piece)
            if not self._paused and sum(map(len, self._waiting)) > HELD_BACK:
                self._paused = True
                self._transport.pause_reading()
        self._ended = answer is not None
        if self._reader.head is not None and not self.begun.done():
            self.begun.set_result(None)
        self._tell()

    def lost(self, problem: Exception | None) -> None:
        """Take in that the connection has ended."""
        if self._ended or self._problem is not None:
            return
        if problem is None and self._reader.end() is not None:
            self._ended = True
            self._tell()
        else:
            self.fail(ConnectionFailed(f"the connection broke: {problem or 'the server closed it'}"))

    def give_up(self) -> None:
        """Fail because the head has not come in time."""
        self.fail(ConnectionTimedOut("no complete answer in time"))

    def fail(self, problem: ConnectionFailed) -> None:
        """Fail with what went wrong, and end."""
        self._problem = problem
        if not self.begun.done():
            self.begun.set_exception(problem)
        self._tell()
        self.end()

    def _tell(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

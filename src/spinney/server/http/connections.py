"""How many connections there may be: a bound that strangers cannot use to keep others out.

A connection is a stranger's until a request on it has shown a token. When there are too many, the oldest stranger's is
closed to make room; where all belong to known clients, the new one is.
"""

import asyncio
from typing import Any

from aiohttp import web
from aiohttp.web_protocol import RequestHandler


class BoundedServer(web.Server):
    """Serves HTTP on at most ``limit`` connections. Mutable: knows which are open, and which are strangers'."""

    def __init__(self, handler: Any, *, limit: int, **options: Any) -> None:
        super().__init__(handler, **options)
        self._limit = limit
        self._open: set[RequestHandler] = set()
        self._strangers: dict[RequestHandler, asyncio.Transport] = {}

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        """Take a new connection, and close the oldest stranger's if that is one too many."""
        super().connection_made(handler, transport)
        self._open.add(handler)
        self._strangers[handler] = transport
        if len(self._open) > self._limit:
            oldest = next(iter(self._strangers))
            self._open.discard(oldest)
            self._strangers.pop(oldest).abort()

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        """Forget a connection."""
        super().connection_lost(handler, exc)
        self._open.discard(handler)
        self._strangers.pop(handler, None)

    def know(self, handler: RequestHandler) -> None:
        """Take a connection for one of a known client."""
        self._strangers.pop(handler, None)

"""What has to pass a proxy: it goes over one aiohttp session.

Loading aiohttp takes as long as listing a thousand pods, so :mod:`spinney.kube.http` loads this module only where there
is a proxy.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import aiohttp
from yarl import URL

from spinney.kube.credentials import Credential, Header
from spinney.kube.errors import ConnectionFailed, ConnectionRefused, ConnectionTimedOut
from spinney.kube.transport import Request, Response, joined
from spinney.kube.wire.connections import CONNECT_SECONDS
from spinney.kube.wire.handshakes import Handshakes

READ_BUFFER = 1 << 18


class ProxiedSession:
    """One aiohttp session with one API server. Mutable: it has connections."""

    def __init__(self, base: str, *, always: tuple[Header, ...], proxy: str, server_name: str | None = None) -> None:
        self._base = base
        self._proxy = proxy
        self._server_name = server_name
        self._handshakes = Handshakes(_cut)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=90),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=dict(always),
            read_bufsize=READ_BUFFER,
        )

    async def request(self, request: Request, credential: Credential, context: ssl.SSLContext | None) -> Response:
        """Send one request and return its complete answer."""
        with translated(self._where(request)):
            async with await self._open(request, credential, context, seconds=request.timeout) as response:
                return Response(response.status, _lower(response.headers), await response.read())

    async def begin(self, request: Request, credential: Credential, context: ssl.SSLContext | None) -> "ProxiedStream":
        """Return an answer whose head has come; its body may take as long as it likes."""
        with translated(self._where(request)):
            async with asyncio.timeout(request.timeout):
                opening = self._open(request, credential, context, seconds=None)
                return ProxiedStream(await self._handshakes.wait_for(opening), self._where(request))

    async def close(self) -> None:
        """Close every connection; one that is just being made has a moment to come about."""
        await self._handshakes.settle()
        await self._session.close()

    async def _open(
        self, request: Request, credential: Credential, context: ssl.SSLContext | None, *, seconds: float | None
    ) -> aiohttp.ClientResponse:
        options: dict[str, Any] = {} if context is None else {"ssl": context}
        if context is not None and self._server_name:
            options["server_hostname"] = self._server_name
        return await self._session.request(
            request.method,
            URL(self._base + request.path),
            params=request.query,
            headers=[*credential.headers, *request.headers.items()],
            data=request.body,
            timeout=aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT_SECONDS),
            proxy=self._proxy,
            allow_redirects=False,
            **options,
        )

    def _where(self, request: Request) -> str:
        return f"{request.method} {self._base}{request.path}"


class ProxiedStream:
    """An HTTP answer as it arrives; fills the ``StreamingResponse`` protocol."""

    def __init__(self, response: aiohttp.ClientResponse, where: str) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = _lower(response.headers)
        self._response = response
        self._where = where

    def end(self) -> None:
        """End the stream and its connection."""
        _cut(self._response)

    async def body(self) -> bytes:
        """Read the rest of the body at once."""
        with translated(self._where):
            return await self._response.read()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with translated(self._where):
            async for chunk in self._response.content.iter_any():
                yield chunk


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Turn the HTTP library's errors into ours, naming the request."""
    try:
        yield
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.ClientHttpProxyError) as problem:
        raise ConnectionRefused(f"{where}: no connection: {_say(problem)}") from problem
    except TimeoutError as problem:
        raise ConnectionTimedOut(f"{where}: no complete answer in time") from problem
    except aiohttp.ClientError as problem:
        raise ConnectionFailed(f"{where}: the connection broke: {_say(problem)}") from problem


def _cut(response: aiohttp.ClientResponse) -> None:
    """End a stream and its connection at once: a farewell over TLS would wait for the server's."""
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    response.close()


def _say(problem: Exception) -> str:
    if isinstance(problem, aiohttp.ClientConnectorError):
        return f"{problem.host}:{problem.port} does not answer ({problem.os_error})"
    return str(problem) or type(problem).__name__


def _lower(headers: Mapping[str, str]) -> Mapping[str, str]:
    return joined((name.lower(), value) for name, value in headers.items())

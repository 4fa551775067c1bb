"""The transport over HTTP to one API server.

Requests with a complete answer go over lean connections of our own (:mod:`spinney.kube.connections`); streams, and
everything that has to pass a proxy, over one aiohttp session. Neither has a limit on connections: every watch holds one
for minutes, and a limit would have them starve the writes. Redirects are not followed and cookies not kept, so
credentials go nowhere but to the server they are for.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
from yarl import URL

from spinney.kube.connections import CONNECT_SECONDS, Connections
from spinney.kube.credentials import Credential, CredentialSource, FixedCredential
from spinney.kube.errors import ConnectionFailed, ConnectionRefused, ConnectionTimedOut
from spinney.kube.tls import ClientCertificate, client_context
from spinney.kube.transport import Request, Response, joined

CLOSE_SECONDS = 1.0
READ_BUFFER = 1 << 18
USER_AGENT = "spinney"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where an API server is and how to reach and recognise it."""

    url: str
    authorities: bytes | None = None  # PEM; None trusts what the system trusts
    insecure: bool = False
    server_name: str | None = None
    proxy: str | None = None
    compression: bool = True


class HttpTransport:
    """Carries requests to one API server over HTTP; fills the ``Transport`` protocol."""

    def __init__(self, endpoint: Endpoint, credentials: CredentialSource | None = None) -> None:
        self.endpoint = endpoint
        self._base = endpoint.url.rstrip("/")
        self._credentials = credentials or FixedCredential()
        encoding = "gzip" if endpoint.compression else "identity"
        self._always = (("user-agent", USER_AGENT), ("accept-encoding", encoding))
        self._session: aiohttp.ClientSession | None = None
        self._beginning: set[asyncio.Task[aiohttp.ClientResponse]] = set()
        self._contexts: dict[ClientCertificate | None, ssl.SSLContext] = {}
        self._connections: dict[ClientCertificate | None, Connections] = {}

    async def request(self, request: Request) -> Response:
        """Send one request and return its complete answer; a 401 is answered once with a fresh credential."""
        credential = await self._credentials.credential()
        response = await self._send(request, credential)
        if response.status == 401 and self._credentials.reject(credential):
            response = await self._send(request, await self._credentials.credential())
        return response

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator["HttpStream"]:
        """Send one request and hand out its answer as it arrives; only the wait for its head is bounded."""
        credential = await self._credentials.credential()
        response = await self._begin(request, credential)
        if response.status == 401 and self._credentials.reject(credential):
            _cut(response)
            response = await self._begin(request, await self._credentials.credential())
        try:
            yield HttpStream(response, self._where(request))
        finally:
            _cut(response)

    async def close(self) -> None:
        """Close every connection; one that is just being made has a moment to come about."""
        for connections in self._connections.values():
            await connections.close()
        if self._beginning:
            _, late = await asyncio.wait(self._beginning, timeout=CLOSE_SECONDS)
            for each in late:
                each.cancel()
        if self._session is not None:
            await self._session.close()

    async def _send(self, request: Request, credential: Credential) -> Response:
        if self.endpoint.proxy is None:
            return await self._send_directly(request, credential)
        with translated(self._where(request)):
            async with await self._open(request, credential, seconds=request.timeout) as response:
                return Response(response.status, _lower(response.headers), await response.read())

    async def _send_directly(self, request: Request, credential: Credential) -> Response:
        connections = self._connections.get(credential.certificate) or self._connections_as(credential)
        try:
            return await connections.request(request, (*self._always, *credential.headers))
        except ConnectionFailed as problem:
            raise type(problem)(f"{self._where(request)}: {problem}") from problem

    def _connections_as(self, credential: Credential) -> Connections:
        """Return connections that present this credential's certificate; those that present another are retired."""
        for connections in self._connections.values():
            connections.retire()
        context = self._context(credential.certificate) if self._base.startswith("https:") else None
        connections = Connections(self._base, context=context, server_name=self.endpoint.server_name)
        self._connections = {credential.certificate: connections}
        return connections

    async def _begin(self, request: Request, credential: Credential) -> aiohttp.ClientResponse:
        """Return an answer whose head has come; its body may take as long as it likes.

        A connection that is cancelled during its TLS handshake is never closed by asyncio. So whoever no longer waits
        for an answer does not cancel it: it is ended when it comes.
        """
        beginning = asyncio.create_task(self._open(request, credential, seconds=None))
        self._beginning.add(beginning)
        beginning.add_done_callback(self._beginning.discard)
        with translated(self._where(request)):
            try:
                async with asyncio.timeout(request.timeout):
                    return await asyncio.shield(beginning)
            except (asyncio.CancelledError, TimeoutError):
                beginning.add_done_callback(_cut_unwanted)
                raise

    async def _open(self, request: Request, credential: Credential, *, seconds: float | None) -> aiohttp.ClientResponse:
        secure = self._base.startswith("https:")
        options: dict[str, Any] = {"ssl": self._context(credential.certificate)} if secure else {}
        if secure and self.endpoint.server_name:
            options["server_hostname"] = self.endpoint.server_name
        return await self._connected().request(
            request.method,
            URL(self._base + request.path),
            params=request.query,
            headers=[*credential.headers, *request.headers.items()],
            data=request.body,
            timeout=aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT_SECONDS),
            proxy=self.endpoint.proxy,
            allow_redirects=False,
            **options,
        )

    def _connected(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=90),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers=dict(self._always),
                read_bufsize=READ_BUFFER,
            )
        return self._session

    def _context(self, certificate: ClientCertificate | None) -> ssl.SSLContext:
        """Return the context for this client certificate; connections made with another are not reused."""
        context = self._contexts.get(certificate)
        if context is None:
            context = client_context(
                authorities=self.endpoint.authorities, insecure=self.endpoint.insecure, certificate=certificate
            )
            self._contexts = {certificate: context}
        return context

    def _where(self, request: Request) -> str:
        return f"{request.method} {self._base}{request.path}"


class HttpStream:
    """An HTTP answer as it arrives; fills the ``StreamingResponse`` protocol."""

    def __init__(self, response: aiohttp.ClientResponse, where: str) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = _lower(response.headers)
        self._response = response
        self._where = where

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


def _cut_unwanted(beginning: asyncio.Task[aiohttp.ClientResponse]) -> None:
    """End an answer that nobody waits for any more; that there was none is no news to anybody."""
    if not beginning.cancelled() and beginning.exception() is None:
        _cut(beginning.result())


def _say(problem: Exception) -> str:
    return str(problem) or type(problem).__name__


def _lower(headers: Mapping[str, str]) -> Mapping[str, str]:
    return joined((name.lower(), value) for name, value in headers.items())

"""The transport over HTTP to one API server.

Requests and streams go over lean connections of our own (:mod:`.wire.connections`); what has to pass a proxy,
over one aiohttp session (:mod:`.wire.proxied`), which is loaded for that only. Neither has a limit on
connections: every watch holds one for minutes, and a limit would have them starve the writes. Redirects are not
followed and cookies not kept, so credentials go nowhere but to the server they are for.
"""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec
import structlog

from spinney.kube.credentials import Credential, CredentialSource, FixedCredential
from spinney.kube.errors import ConfigurationError, ConnectionFailed, ConnectionRefused
from spinney.kube.tls import ClientCertificate, client_context
from spinney.kube.transport import Request, Response
from spinney.kube.troubles import Troubles
from spinney.kube.wire.connections import Connections
from spinney.kube.wire.handshakes import CLOSED_HERE
from spinney.runtime import Executor, InlineExecutor

if TYPE_CHECKING:
    from spinney.kube.wire.proxied import ProxiedSession, ProxiedStream
    from spinney.kube.wire.streams import ResponseStream

USER_AGENT = "spinney"

T = TypeVar("T")

log = structlog.get_logger()


class Endpoint(msgspec.Struct, frozen=True):
    """Where an API server is and how to reach and recognise it."""

    url: str
    authorities: bytes | None = None  # PEM; None trusts what the system trusts
    authorities_file: Path | None = None  # where they are from: another program may rotate them
    insecure: bool = False
    server_name: str | None = None
    proxy: str | None = None
    compression: bool = True


class HttpTransport:
    """Carries requests to one API server over HTTP; fills the ``Transport`` protocol."""

    def __init__(
        self, endpoint: Endpoint, credentials: CredentialSource | None = None, *, executor: Executor | None = None
    ) -> None:
        """Carry requests to an endpoint; ``executor`` is where the library for proxies is loaded."""
        self.endpoint = endpoint
        self._executor = executor or InlineExecutor()
        self._base = endpoint.url.rstrip("/")
        self._authorities = endpoint.authorities
        self._credentials = credentials or FixedCredential()
        encoding = "gzip" if endpoint.compression else "identity"
        self._always = (("user-agent", USER_AGENT), ("accept-encoding", encoding))
        self._always_streaming = (("user-agent", USER_AGENT), ("accept-encoding", "identity"))
        self._proxied: ProxiedSession | None = None
        self._contexts: dict[ClientCertificate | None, ssl.SSLContext] = {}
        self._connections: dict[ClientCertificate | None, Connections] = {}
        self._retired: list[Connections] = []
        self._closed = False
        self._troubles = Troubles()

    async def request(self, request: Request) -> Response:
        """Send one request and return its complete answer; a 401 is answered once with a fresh credential."""
        credential = await self._credentials.credential()
        response = await self._send(request, credential)
        if response.status == 401 and self._credentials.reject(credential):
            response = await self._send(request, await self._credentials.credential())
        return response

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator["ResponseStream | ProxiedStream"]:
        """Send one request and hand out its answer as it arrives; only the wait for its head is bounded."""
        credential = await self._credentials.credential()
        stream = await self._begin(request, credential)
        if stream.status == 401 and self._credentials.reject(credential):
            stream.end()
            stream = await self._begin(request, await self._credentials.credential())
        try:
            yield stream
        finally:
            stream.end()

    async def close(self) -> None:
        """Close every connection; one that is just being made has a moment to come about. What follows is refused."""
        self._closed = True
        for connections in (*self._connections.values(), *self._retired):
            await connections.close()
        if self._proxied is not None:
            await self._proxied.close()

    async def _send(self, request: Request, credential: Credential) -> Response:
        return await self._recognising(lambda: self._sent(request, credential))

    async def _begin(self, request: Request, credential: Credential) -> "ResponseStream | ProxiedStream":
        return await self._recognising(lambda: self._begun(request, credential))

    async def _recognising(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask the server; once more, if it was not recognised and its authorities have been rotated meanwhile."""
        trusted = self._authorities
        try:
            return await ask()
        except ConnectionRefused as problem:
            if not _is_distrust(problem):
                raise
            self._read_authorities()
            if self._authorities == trusted:
                raise
        return await ask()

    def _read_authorities(self) -> None:
        """Read again whom to trust."""
        file = self.endpoint.authorities_file
        try:
            found = file.read_bytes() if file is not None else None
            if not found or found == self._authorities:
                return
            client_context(authorities=found)
        except (OSError, ConfigurationError) as problem:  # a rotation in progress: it is read again
            say = log.info if self._troubles.is_new(problem) else log.debug
            say("certificate authority not read again", file=str(file), error=str(problem))
            return
        self._troubles.end()
        self._authorities = found
        self._contexts.clear()
        self._retire()

    async def _sent(self, request: Request, credential: Credential) -> Response:
        if self.endpoint.proxy is not None:
            session = await self._session(self.endpoint.proxy)
            return await session.request(request, credential, self._context(credential.certificate))
        try:
            return await self._connections_as(credential).request(request, (*self._always, *credential.headers))
        except ConnectionFailed as problem:
            raise self._named(problem, request) from problem

    async def _begun(self, request: Request, credential: Credential) -> "ResponseStream | ProxiedStream":
        if self.endpoint.proxy is not None:
            session = await self._session(self.endpoint.proxy)
            return await session.begin(request, credential, self._context(credential.certificate))
        headers = (*self._always_streaming, *credential.headers)
        try:
            return await self._connections_as(credential).begin(request, headers, where=self._where(request))
        except ConnectionFailed as problem:
            raise self._named(problem, request) from problem

    def _connections_as(self, credential: Credential) -> Connections:
        """Return connections that present this credential's certificate; those that present another are retired."""
        self._check_open()
        found = self._connections.get(credential.certificate)
        if found is None:
            self._retire()
            found = Connections(
                self._base, context=self._context(credential.certificate), server_name=self.endpoint.server_name
            )
            self._connections = {credential.certificate: found}
        return found

    def _retire(self) -> None:
        """Make no further request over the connections there are."""
        for connections in self._connections.values():
            connections.retire()
            self._retired.append(connections)
        self._connections = {}
        self._retired = [connections for connections in self._retired if not connections.idle]

    async def _session(self, proxy: str) -> "ProxiedSession":
        if self._proxied is None:
            loaded = await self._executor.run(import_module, "spinney.kube.wire.proxied")
            self._check_open()
            if self._proxied is None:  # another request may have waited for the same
                self._proxied = loaded.ProxiedSession(
                    self._base, always=self._always, proxy=proxy, server_name=self.endpoint.server_name
                )
        return self._proxied

    def _named(self, problem: ConnectionFailed, request: Request) -> ConnectionFailed:
        """Return a problem with the request that it was about."""
        return type(problem)(f"{self._where(request)}: {problem}")

    def _check_open(self) -> None:
        if self._closed:
            raise ConnectionRefused(CLOSED_HERE)

    def _context(self, certificate: ClientCertificate | None) -> ssl.SSLContext | None:
        """Return the context for this client certificate; connections made with another are not reused."""
        if not self._base.startswith("https:"):
            return None
        context = self._contexts.get(certificate)
        if context is None:
            context = client_context(
                authorities=self._authorities, insecure=self.endpoint.insecure, certificate=certificate
            )
            self._contexts = {certificate: context}
        return context

    def _where(self, request: Request) -> str:
        return f"{request.method} {self._base}{request.path}"


def _is_distrust(problem: BaseException | None) -> bool:
    """Tell whether no connection was made because the server's certificate is of nobody who is trusted."""
    while problem is not None and not isinstance(problem, ssl.SSLCertVerificationError):
        problem = problem.__cause__
    return problem is not None

"""The transport over HTTP to one API server.

Requests with a complete answer go over lean connections of our own (:mod:`spinney.kube.connections`); streams, and
everything that has to pass a proxy, over one aiohttp session (:mod:`spinney.kube.proxied`). Neither has a limit on
connections: every watch holds one for minutes, and a limit would have them starve the writes. Redirects are not
followed and cookies not kept, so credentials go nowhere but to the server they are for.
"""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from spinney.kube.connections import Connections
from spinney.kube.credentials import Credential, CredentialSource, FixedCredential
from spinney.kube.errors import ConnectionFailed, ConnectionRefused
from spinney.kube.handshakes import CLOSED_HERE
from spinney.kube.tls import ClientCertificate, client_context
from spinney.kube.transport import ClientRequest, ClientResponse
from spinney.runtime import Executor, InlineExecutor

if TYPE_CHECKING:
    from spinney.kube.proxied import HttpStream, Streams

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

    def __init__(
        self, endpoint: Endpoint, credentials: CredentialSource | None = None, *, executor: Executor | None = None
    ) -> None:
        """Carry requests to an endpoint; ``executor`` is where the library for streams is loaded."""
        self.endpoint = endpoint
        self._executor = executor or InlineExecutor()
        self._base = endpoint.url.rstrip("/")
        self._credentials = credentials or FixedCredential()
        encoding = "gzip" if endpoint.compression else "identity"
        self._always = (("user-agent", USER_AGENT), ("accept-encoding", encoding))
        self._streams: Streams | None = None
        self._contexts: dict[ClientCertificate | None, ssl.SSLContext] = {}
        self._connections: dict[ClientCertificate | None, Connections] = {}
        self._closed = False

    async def request(self, request: ClientRequest) -> ClientResponse:
        """Send one request and return its complete answer; a 401 is answered once with a fresh credential."""
        credential = await self._credentials.credential()
        response = await self._send(request, credential)
        if response.status == 401 and self._credentials.reject(credential):
            response = await self._send(request, await self._credentials.credential())
        return response

    @asynccontextmanager
    async def stream(self, request: ClientRequest) -> AsyncIterator["HttpStream"]:
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
        for connections in self._connections.values():
            await connections.close()
        if self._streams is not None:
            await self._streams.close()

    async def _send(self, request: ClientRequest, credential: Credential) -> ClientResponse:
        if self.endpoint.proxy is None:
            return await self._send_directly(request, credential)
        streams = await self._streaming()
        return await streams.request(request, credential, self._context(credential.certificate))

    async def _send_directly(self, request: ClientRequest, credential: Credential) -> ClientResponse:
        try:
            self._check_open()
            connections = self._connections.get(credential.certificate) or self._connections_as(credential)
            return await connections.request(request, (*self._always, *credential.headers))
        except ConnectionFailed as problem:
            raise type(problem)(f"{self._where(request)}: {problem}") from problem

    def _connections_as(self, credential: Credential) -> Connections:
        """Return connections that present this credential's certificate; those that present another are retired."""
        for connections in self._connections.values():
            connections.retire()
        context = self._context(credential.certificate)
        connections = Connections(self._base, context=context, server_name=self.endpoint.server_name)
        self._connections = {credential.certificate: connections}
        return connections

    async def _begin(self, request: ClientRequest, credential: Credential) -> "HttpStream":
        streams = await self._streaming()
        return await streams.begin(request, credential, self._context(credential.certificate))

    async def _streaming(self) -> "Streams":
        if self._streams is None:
            loaded = await self._executor.run(import_module, "spinney.kube.proxied")
            self._check_open()
            if self._streams is None:  # another stream may have waited for the same
                self._streams = loaded.Streams(
                    self._base, always=self._always, proxy=self.endpoint.proxy, server_name=self.endpoint.server_name
                )
        return self._streams

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
                authorities=self.endpoint.authorities, insecure=self.endpoint.insecure, certificate=certificate
            )
            self._contexts = {certificate: context}
        return context

    def _where(self, request: ClientRequest) -> str:
        return f"{request.method} {self._base}{request.path}"

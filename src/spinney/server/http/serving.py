"""Serving the API over HTTP: TLS, a bearer token, and limits on what a client may cost.

Loopback only, unless told otherwise. A request that is malformed, too large or too slow gets an error or loses its
connection; a watcher that does not read is cut off. Nothing a client does holds up another or grows without bound.

A connection is a stranger's until a request on it has shown a token. When there are too many, the oldest stranger's is
closed to make room; where all belong to known clients, the new one is.
"""

import asyncio
import base64
import ipaddress
import resource
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import structlog
import yaml
from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from spinney.api.struct import JSON
from spinney.runtime.certificates import ServingCertificate, serving_certificate
from spinney.runtime.private_files import write_private
from spinney.runtime.serving import listen, stop_serving
from spinney.server.authentication.identity import identity
from spinney.server.authentication.tokens import InvalidToken
from spinney.server.authorization.impersonation import SEPARATOR
from spinney.server.exchange.message import ANONYMOUS, Request, Response, User
from spinney.server.exchange.responding import failure
from spinney.server.exchange.status import StatusError, too_many_requests, unauthorized
from spinney.server.server import ApiServer


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


log = structlog.get_logger()

_SHUTDOWN = 0.5  # for requests under way; watches are cut off then
_LARGE = 64 * 1024  # more than this may wait for the client
_OPEN_PATHS = ("/healthz", "/livez", "/readyz", "/version")


class RefusedAddress(ValueError):
    """An address that is not loopback was asked for without saying that this is meant."""


def _sensible_connections() -> int:
    """Return how many connections leave the process enough files for everything else."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(64, min(8192, files // 2))


@dataclass(frozen=True, kw_only=True)
class Listening:
    """Where and how to serve."""

    host: str = "127.0.0.1"
    port: int = 0  # 0: any free port
    setting: str = ""  # what chooses them, for messages
    allow_remote: bool = False
    tls: bool = True
    token: str | None = None  # None: the one in the data directory, or a random one
    names: tuple[str, ...] = ()  # further host names for the certificate
    max_body: int = 3 * 1024 * 1024
    max_requests: int = 4096  # at the same time, watches included
    max_connections: int = field(default_factory=_sensible_connections)
    idle_timeout: float = 60.0
    body_timeout: float = 30.0
    write_timeout: float = 30.0
    lingering: float = 1.0

    def __post_init__(self) -> None:
        if not self.allow_remote and not _is_loopback(self.host):
            raise RefusedAddress(
                f"host is {self.host!r}, which other machines can reach; the server only listens on loopback unless"
                " allow_remote is set"
            )


class HttpServer:
    """An :class:`ApiServer` on a port; use as ``async with HttpServer(server) as http``."""

    def __init__(self, server: ApiServer, listening: Listening | None = None) -> None:
        self._server = server
        self._listening = listening or Listening()
        self._identity = identity(server.options.data_directory, now=server.runtime.clock.now())
        self.token = self._listening.token or self._identity.token
        server.authenticator.trust(self.token)
        self._certificate: ServingCertificate | None = None
        self._connections: BoundedServer | None = None
        self._runner: web.ServerRunner | None = None
        self._port = 0
        self._active = 0

    @property
    def url(self) -> str:
        """Where the server is, once it is entered."""
        scheme = "https" if self._listening.tls else "http"
        host = self._listening.host
        shown = f"[{host}]" if ":" in host else host
        return f"{scheme}://{shown}:{self._port}"

    @property
    def authority(self) -> bytes | None:
        """The authority that signed the server's certificate, in PEM; ``None`` without TLS."""
        return self._certificate.authority if self._certificate else None

    @property
    def kubeconfig(self) -> str:
        """A kubeconfig for this server, as text."""
        cluster = {"server": self.url}
        if self.authority is not None:
            cluster["certificate-authority-data"] = base64.b64encode(self.authority).decode()
        return kubeconfig_text(cluster, {"token": self.token})

    def write_kubeconfig(self, path: Path) -> None:
        """Write the kubeconfig, readable by its owner only; it is never there half written."""
        path.parent.mkdir(parents=True, exist_ok=True)
        write_private(path, self.kubeconfig.encode())

    async def __aenter__(self) -> Self:
        listening = self._listening
        if listening.tls:
            names = tuple(dict.fromkeys((listening.host, "localhost", "127.0.0.1", "::1", *listening.names)))
            self._certificate = serving_certificate(
                names, now=self._server.runtime.clock.now(), authority=self._identity.authority
            )
            self._server.present_authority(self._certificate.authority.decode())
        self._connections = BoundedServer(
            self._handle,
            limit=listening.max_connections,
            handler_cancellation=True,  # a watch ends when its client goes
            keepalive_timeout=listening.idle_timeout,  # also bounds the wait for a request's headers
            lingering_time=listening.lingering,  # for the rest of a body that was refused
            auto_decompress=False,  # as kube-apiserver; a small body could become a large one
            access_log=None,
        )
        self._runner = web.ServerRunner(self._connections, shutdown_timeout=_SHUTDOWN)
        await self._runner.setup()
        context = self._certificate.context() if self._certificate else None
        await listen(self._runner, listening.host, listening.port, setting=listening.setting, tls=context)
        self._port = self._runner.addresses[0][1]
        log.info("embedded API server listens", url=self.url)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await stop_serving(self._runner)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if self._active >= self._listening.max_requests:
            return _complete(failure(too_many_requests("too many requests, please try again later", retry_after=1)))
        self._active += 1
        try:
            return await self._answer(request)
        finally:
            self._active -= 1

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            user = self._identify(request)
            query = {name: request.query[name] for name in request.query}
            asked = Request(request.method, request.path, query, _headers(request), b"", user)
            if user is ANONYMOUS:
                self._server.check(asked)  # before anything is awaited from an unknown client
            if not _is_open(request):
                asked = replace(asked, body=await self._body(request))
        except StatusError as error:
            return _complete(failure(error))
        answer = await self._server.handle(asked)
        if isinstance(answer.body, bytes):
            return await self._deliver(request, _complete(answer))
        return await self._stream(request, answer, answer.body)

    def _identify(self, request: web.BaseRequest) -> User:
        """Return who is asking; raise a 401 for a bad token, and for none where nobody unknown is let in."""
        header = request.headers.get("authorization", "")
        scheme, _, given = header.partition(" ")
        if scheme.lower() == "bearer":
            try:
                user = self._server.authenticator.authenticate(given.strip()).user
            except InvalidToken as error:
                raise unauthorized() from error
            assert self._connections is not None, "requests come while the server is entered"
            self._connections.know(request.protocol)
            return user
        if not header and (self._server.admits_anonymous or _is_open(request)):
            return ANONYMOUS
        raise unauthorized()

    async def _body(self, request: web.BaseRequest) -> bytes:
        if not request.can_read_body:
            return b""
        limit = self._listening.max_body
        chunks: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._listening.body_timeout):
                async for chunk in request.content.iter_any():
                    size += len(chunk)
                    if size > limit:
                        message = f"the body is larger than {limit} bytes"
                        raise StatusError(413, "RequestEntityTooLarge", message, headers={"connection": "close"})
                    chunks.append(chunk)
        except TimeoutError as error:
            message = f"the body did not arrive within {self._listening.body_timeout:g} seconds"
            raise StatusError(408, "Timeout", message, headers={"connection": "close"}) from error
        return b"".join(chunks)

    async def _deliver(self, request: web.BaseRequest, response: web.Response) -> web.Response:
        """Send a large answer here, where a client that does not read it loses its connection."""
        if (response.content_length or 0) > _LARGE:
            try:
                async with asyncio.timeout(self._listening.write_timeout):
                    await response.prepare(request)
                    await response.write_eof()
            except TimeoutError:
                log.info("slow reader disconnected", path=request.path)
                if request.transport is not None:
                    request.transport.abort()
        return response

    async def _stream(
        self, request: web.BaseRequest, answer: Response, body: AsyncIterator[bytes]
    ) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status, headers=answer.headers)
        response.enable_chunked_encoding()
        await response.prepare(request)
        try:
            async for chunk in body:
                async with asyncio.timeout(self._listening.write_timeout):
                    await response.write(chunk)
        except TimeoutError:
            log.info("slow watcher disconnected", path=request.path)
            if request.transport is not None:
                request.transport.abort()
        except ConnectionResetError:
            log.debug("watcher went away", path=request.path)
        finally:
            closing = getattr(body, "aclose", None)
            if closing is not None:
                await closing()
        return response


def _is_open(request: web.BaseRequest) -> bool:
    """Tell whether this needs no credentials; nothing that is sent along is read."""
    return request.path.startswith(_OPEN_PATHS)


def _complete(answer: Response) -> web.Response:
    assert isinstance(answer.body, bytes)
    return web.Response(status=answer.status, headers=answer.headers, body=answer.body)


def _headers(request: web.BaseRequest) -> dict[str, str]:
    """Return the headers by their lower-case names; those of impersonation may stand there several times."""
    headers: dict[str, str] = {}
    for given, value in request.headers.items():
        name = given.lower()
        repeated = name in headers and name.startswith("impersonate-")
        headers[name] = f"{headers[name]}{SEPARATOR}{value}" if repeated else value
    return headers


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def kubeconfig_text(cluster: JSON, user: JSON) -> str:
    """Return a kubeconfig for one cluster, as one user."""
    name = "spinney"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": "default"}}],
        "current-context": name,
    }
    return yaml.safe_dump(content, sort_keys=False)

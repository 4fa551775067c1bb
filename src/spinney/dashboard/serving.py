"""The dashboard over HTTP: the page, the JSON API and the event stream. Nothing here writes to a cluster.

Every answer forbids the browser whatever the page does not need: other origins, inline scripts and styles, frames,
sniffing, referrers. Text from the cluster leaves as JSON and is put on the page as text.
"""

import asyncio
import gzip
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import resources
from typing import Any, Final

import msgspec
import structlog
from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge

from spinney.api.struct import Struct, encode
from spinney.dashboard.access import Access, NotAllowed
from spinney.dashboard.advising import Adviser, NoAnswer
from spinney.dashboard.feed import framed
from spinney.dashboard.gang_page import gang_page, objects_text
from spinney.dashboard.history import LONGEST_HOURS, Prometheus, PrometheusUnreadable
from spinney.dashboard.schedulers import SchedulerAddress, cycles_of
from spinney.dashboard.view import View
from spinney.dashboard.viewers import Viewers
from spinney.gangs.tree import GangKey
from spinney.kube.errors import KubeError
from spinney.runtime.numbers import whole_number_in
from spinney.runtime.serving import listen, stop_serving

log = structlog.get_logger()

HEARTBEAT_SECONDS: Final = 15.0
_SLOW_SECONDS: Final = 30.0
"""After which a viewer that does not read is cut off; it comes back with the last event it saw."""
_LARGEST_BODY: Final = 1024 * 1024
_COMPRESS_FROM: Final = 4096
_SECURITY: Final = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "server": "spinney",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
_TYPES: Final = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
_PAGE: Final = resources.files("spinney.dashboard") / "page"

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class DashboardMetrics:
    """What the dashboard tells Prometheus of itself."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.streams = Gauge("spinney_dashboard_streams", "Pages that are being sent changes.", registry=registry)
        self.views = Gauge(
            "spinney_dashboard_views", "Viewers whose part of the cluster is being followed.", registry=registry
        )
        self.requests = Counter(
            "spinney_dashboard_requests", "Requests by status of the answer.", ["status"], registry=registry
        )


class WhatIfQuestion(Struct, frozen=True, kw_only=True):
    """What is asked on the What if page."""

    manifests: str
    namespace: str = "default"


class Dashboard:
    """The dashboard's HTTP server. Use :meth:`serving`."""

    def __init__(
        self,
        viewers: Viewers,
        access: Access,
        adviser: Adviser,
        *,
        version: str,
        schedulers: Sequence[SchedulerAddress] = (),
        prometheus: Prometheus | None = None,
        metrics: DashboardMetrics | None = None,
    ) -> None:
        self._schedulers = tuple(schedulers)
        self._prometheus = prometheus
        self._viewers, self._access, self._adviser = viewers, access, adviser
        self._version = version
        self._metrics = metrics or DashboardMetrics(CollectorRegistry())
        self._metrics.views.set_function(lambda: len(viewers))
        self._files = {each.name: each.read_bytes() for each in _PAGE.iterdir() if each.is_file()}
        self._compressed: tuple[bytes, bytes] = (b"", b"")
        gang = "/api/gangs/{source}/{namespace}/{name}"
        self._app = web.Application(client_max_size=_LARGEST_BODY, middlewares=[self._guarded])
        self._app.add_routes(
            [
                web.get("/", self._file),
                web.get("/assets/{name}", self._file),
                web.get("/api/about", self._about),
                web.get("/api/state", self._state),
                web.get("/api/events", self._events),
                web.get(gang, self._gang),
                web.get(f"{gang}/why", self._why),
                web.get(f"{gang}/objects", self._objects),
                web.get("/api/queues/history", self._queue_history),
                web.get("/api/cycles", self._cycles),
                web.post("/api/what-if", self._what_if),
            ]
        )

    @asynccontextmanager
    async def serving(self, port: int, *, tls: ssl.SSLContext | None = None, setting: str = "") -> AsyncIterator[str]:
        """Serve for the time of the block; gives the address, with the port that was taken for 0.

        ``setting`` is what chooses the port, for messages.
        """
        runner = web.AppRunner(self._app, access_log=None, handler_cancellation=True, shutdown_timeout=0.5)
        async with self._viewers.running():
            await runner.setup()
            try:
                await listen(runner, self._access.host, port, setting=setting, tls=tls)
                host, taken = runner.addresses[0][:2]
                shown = f"[{host}]" if ":" in host else host
                yield f"{'https' if tls is not None else 'http'}://{shown}:{taken}/"
            finally:
                await stop_serving(runner)

    # -- every request -----------------------------------------------------------------------------------------------

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Answer) -> web.StreamResponse:
        try:
            self._access.check_host(request.headers)
            response = await handler(request)
        except NotAllowed as refusal:
            headers = {"www-authenticate": "Bearer"} if refusal.status == 401 else {}
            response = _failure(refusal.status, str(refusal), headers)
        except NoAnswer as refusal:
            response = _failure(422, str(refusal))
        except KubeError as error:
            response = _failure(502, f"the API server could not be read: {' '.join(str(error).split())}")
        except web.HTTPException as error:
            response = _failure(error.status, error.reason)
        except (ConnectionError, TimeoutError, asyncio.CancelledError):
            raise  # the viewer is gone
        except Exception as error:
            log.exception("request failed", path=request.path)
            response = _failure(500, f"this should not have happened: {type(error).__name__}: {error}")
        self._metrics.requests.labels(str(response.status)).inc()
        if not response.prepared:
            response.headers.update(_SECURITY)
            if "content-encoding" not in response.headers and (response.content_length or 0) >= _COMPRESS_FROM:
                response.enable_compression()
        return response

    def _looking(self, request: web.Request) -> AbstractAsyncContextManager[View]:
        return self._viewers.looking(self._access.visitor(request.headers))

    # -- the page ----------------------------------------------------------------------------------------------------

    async def _file(self, request: web.Request) -> web.Response:
        name = request.match_info.get("name", "index.html")
        body = self._files.get(name)
        if body is None:
            raise NotAllowed(404, f"the page has no file {name!r}")
        kind = _TYPES.get(name.rpartition(".")[2], "application/octet-stream")
        return web.Response(body=body, content_type=kind, charset="utf-8", headers={"cache-control": "no-cache"})

    # -- the API -----------------------------------------------------------------------------------------------------

    async def _about(self, _: web.Request) -> web.Response:
        return _json(
            {"version": self._version, "authentication": self._access.mode, "prometheus": self._prometheus is not None}
        )

    async def _state(self, request: web.Request) -> web.Response:
        async with self._looking(request) as view:
            body = view.state()
        if "gzip" not in request.headers.get("accept-encoding", "") or len(body) < _COMPRESS_FROM:
            return _json(body)
        if self._compressed[0] is not body:
            self._compressed = (body, gzip.compress(body, 3))
        return _json(self._compressed[1], {"content-encoding": "gzip"})

    async def _events(self, request: web.Request) -> web.StreamResponse:
        headers = {**_SECURITY, "cache-control": "no-store", "x-accel-buffering": "no"}
        async with self._looking(request) as view:
            stream = web.StreamResponse(headers={**headers, "content-type": "text/event-stream"})
            await stream.prepare(request)
            self._metrics.streams.inc()
            try:
                await self._tell(view, stream, request.headers.get("last-event-id") or view.feed.id)
            finally:
                self._metrics.streams.dec()
            return stream

    async def _tell(self, view: View, stream: web.StreamResponse, last: str) -> None:
        """Send what happens after the event ``last``, until the viewer leaves or has to read the state afresh."""
        feed = view.feed
        await _write(stream, b"retry: 1000\n\n")
        while view.problem is None and view.feed is feed:
            missed = feed.since(last)
            if missed is None:
                break
            events, last = missed
            for event in events:
                await _write(stream, event)
            if not await feed.more(last, within=HEARTBEAT_SECONDS):
                await _write(stream, b": still here\n\n")
        await _write(stream, framed("reset"))

    async def _gang(self, request: web.Request) -> web.Response:
        async with self._looking(request) as view:
            found = gang_page(view, _key(request))
        if found is None:
            raise NotAllowed(404, f"there is no gang {'/'.join(_key(request))}, or you may not see it")
        return _json(encode(found))

    async def _why(self, request: web.Request) -> web.Response:
        async with self._looking(request) as view:
            return _json(encode(await self._adviser.why(view, _key(request))))

    async def _objects(self, request: web.Request) -> web.Response:
        async with self._looking(request) as view:
            text = await objects_text(view, _key(request))
        return web.Response(text=text, content_type="text/plain", headers={"cache-control": "no-store"})

    async def _queue_history(self, request: web.Request) -> web.Response:
        hours, queue = whole_number_in(request.query.get("hours", "")) or 0, request.query.get("queue")
        async with self._looking(request) as view:
            known = {row.line.name for row in view.board.queue_rows if queue in (None, row.line.name)}
            remembered = view.board.history.samples(queue)
            now = view.runtime.clock.now().timestamp()
        if self._prometheus is None or not hours:
            return _json(encode(remembered))
        try:
            longer = await self._prometheus.queues(end=now, hours=min(hours, LONGEST_HOURS), known=known)
        except PrometheusUnreadable as error:
            raise NotAllowed(502, str(error)) from error
        return _json(encode(longer))

    async def _cycles(self, request: web.Request) -> web.Response:
        visitor = self._access.visitor(request.headers)
        number = whole_number_in(request.query.get("after", "")) or 0
        async with self._viewers.looking(visitor) as view:
            namespaces = view.scope.namespaces
        asked = (cycles_of(each, after=number, token=visitor.token, namespaces=namespaces) for each in self._schedulers)
        return _json(encode(await asyncio.gather(*asked)))

    async def _what_if(self, request: web.Request) -> web.Response:
        if request.content_type != "application/json":  # what a form of another site cannot send unasked
            raise NotAllowed(415, f"found content type {request.content_type}, expected application/json")
        async with self._looking(request) as view:
            try:
                question = msgspec.json.decode(await request.read(), type=WhatIfQuestion)
            except web.HTTPRequestEntityTooLarge as error:
                raise NotAllowed(413, f"the text is too long; at most {_LARGEST_BODY} bytes are taken") from error
            except msgspec.DecodeError as error:
                raise NotAllowed(400, f"the body is not a question: {error}") from error
            return _json(encode(await self._adviser.what_if(view, question.manifests, question.namespace)))


def _key(request: web.Request) -> GangKey:
    return GangKey(*(request.match_info[name] for name in ("source", "namespace", "name")))


def _json(body: Any, headers: dict[str, str] | None = None) -> web.Response:
    raw = body if isinstance(body, bytes) else encode(body)
    return web.Response(
        body=raw, content_type="application/json", headers={"cache-control": "no-store", **(headers or {})}
    )


def _failure(status: int, reason: str, headers: dict[str, str] | None = None) -> web.Response:
    response = _json({"error": reason}, headers)
    response.set_status(status)
    return response


async def _write(stream: web.StreamResponse, data: bytes) -> None:
    async with asyncio.timeout(_SLOW_SECONDS):
        await stream.write(data)

"""The API server without a transport: a request in, a response out.

:meth:`ApiServer.handle` serves a request from start to end. Background work (garbage collection, ending namespaces,
expiring events) runs while the server is entered with :meth:`ApiServer.running`.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from spinney.runtime import Runtime
from spinney.server.admission.calling import HttpsCaller, WebhookCaller
from spinney.server.admission.chain import Admission
from spinney.server.admission.webhooks import Webhooks
from spinney.server.background.endings import Endings
from spinney.server.background.expiry import EventExpiry
from spinney.server.background.garbage import GarbageCollector
from spinney.server.bootstrap import bootstrap
from spinney.server.context import Context
from spinney.server.crd.definitions import COLLECTION, definition_kind
from spinney.server.crd.installation import Installation
from spinney.server.discovery import serve_discovery
from spinney.server.exchange import Request, Response
from spinney.server.fields import field_table
from spinney.server.kinds import Registry
from spinney.server.kinds.builtin import builtin_kinds
from spinney.server.openapi import OpenApi
from spinney.server.options import ServerOptions
from spinney.server.resources import serve_resource
from spinney.server.responding import failure, reply_json
from spinney.server.status import ApiError, internal_error, method_not_allowed, no_such_path
from spinney.server.store import Journal, Store
from spinney.server.versions import git_version, version_info

log = structlog.get_logger()

_HEALTH = ("/healthz", "/livez", "/readyz")


class ApiServer:
    """One embedded cluster's API. ``webhooks`` carries admission reviews; by default they go over HTTPS."""

    def __init__(
        self, runtime: Runtime, options: ServerOptions | None = None, *, webhooks: WebhookCaller | None = None
    ) -> None:
        self.options = options or ServerOptions()
        self.runtime = runtime
        self._journal = Journal(self.options.data_directory / "journal") if self.options.data_directory else None
        store = Store(history=self.options.history, journal=self._journal)
        registry = Registry([*builtin_kinds(self.options.gangs), definition_kind()])
        for kind in registry:
            store.open(kind.storage, kind.field_values)
        self._webhooks = Webhooks(runtime, store, registry, webhooks or HttpsCaller(self.options.service_addresses))
        self.context = Context(
            runtime=runtime,
            options=self.options,
            store=store,
            registry=registry,
            fields=field_table(self.options.kubernetes_version),
            admission=Admission(store, self._webhooks),
        )
        Installation(store, registry)
        self._openapi = OpenApi(registry, self.context.fields, git_version(self.options.kubernetes_version))
        self._work = (GarbageCollector(self.context), Endings(self.context), EventExpiry(self.context))
        if self._journal is None or not self._journal.restore(store, first=COLLECTION):
            bootstrap(self.context)

    def close(self) -> None:
        """Let go of the data directory, if there is one; requests may no longer be handled."""
        if self._journal is not None:
            self._journal.close()

    async def handle(self, request: Request) -> Response:
        """Answer a request; what goes wrong is answered too, as a ``Status``."""
        try:
            return await self._route(request)
        except ApiError as error:
            return failure(error)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            log.exception("request failed", method=request.method, path=request.path)
            return failure(internal_error(f"{type(error).__name__}: {error}"))

    async def _route(self, request: Request) -> Response:
        path = request.path
        if path.startswith(("/api/", "/apis/")) and path.strip("/").count("/") > (1 if path.startswith("/api/") else 2):
            return await serve_resource(self.context, request)
        if request.method not in {"GET", "HEAD"}:
            raise method_not_allowed()
        if path.startswith("/api"):
            return serve_discovery(self.context.registry, request)
        if path == "/openapi/v3" or path.startswith("/openapi/v3/"):
            return self._openapi.serve(request)
        if path == "/version":
            return reply_json(version_info(self.options.kubernetes_version))
        if path.rstrip("/") in _HEALTH:
            verbose = "verbose" in request.query
            body = b"[+]ping ok\nhealthz check passed\n" if verbose else b"ok"
            return Response(200, {"content-type": "text/plain; charset=utf-8"}, body)
        raise no_such_path()

    @asynccontextmanager
    async def running(self) -> AsyncIterator["ApiServer"]:
        """Do the background work of the cluster while the block runs."""
        tasks = [asyncio.create_task(work.run(), name=type(work).__name__) for work in self._work]
        for task in tasks:
            task.add_done_callback(_report)
        try:
            yield self
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._webhooks.close()


def _report(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("background work of the embedded cluster has stopped", work=task.get_name(), exc_info=error)

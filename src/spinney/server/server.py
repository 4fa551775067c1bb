"""The API server without a transport: a request in, a response out.

:meth:`ApiServer.handle` serves a request from start to end. Background work (garbage collection, ending namespaces,
expiring events) runs while the server is entered with :meth:`ApiServer.running`.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from spinney.runtime import Runtime
from spinney.server.admission.chain import Admission
from spinney.server.background.endings import Endings
from spinney.server.background.expiry import EventExpiry
from spinney.server.background.garbage import GarbageCollector
from spinney.server.bootstrap import bootstrap
from spinney.server.context import Context
from spinney.server.crd.definitions import definition_kind
from spinney.server.crd.installation import Installation
from spinney.server.exchange import Request, Response
from spinney.server.kinds import Registry
from spinney.server.kinds.builtin import builtin_kinds
from spinney.server.options import ServerOptions
from spinney.server.resources import serve_resource
from spinney.server.responding import failure
from spinney.server.status import ApiError, internal_error
from spinney.server.store import Store

log = structlog.get_logger()


class ApiServer:
    """One embedded cluster's API."""

    def __init__(self, runtime: Runtime, options: ServerOptions | None = None) -> None:
        self.options = options or ServerOptions()
        self.runtime = runtime
        store = Store(history=self.options.history)
        registry = Registry([*builtin_kinds(self.options.gangs), definition_kind()])
        for kind in registry:
            store.open(kind.storage, kind.field_values)
        self.context = Context(
            runtime=runtime, options=self.options, store=store, registry=registry, admission=Admission(store)
        )
        Installation(store, registry)
        self._work = (GarbageCollector(self.context), Endings(self.context), EventExpiry(self.context))
        bootstrap(self.context)

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
        return await serve_resource(self.context, request)

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


def _report(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("background work of the embedded cluster has stopped", work=task.get_name(), exc_info=error)

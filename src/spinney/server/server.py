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
from spinney.server.bootstrap import bootstrap
from spinney.server.context import Context
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
        registry = Registry(builtin_kinds(self.options.gangs))
        for kind in registry:
            store.open(kind.storage, kind.field_values)
        self.context = Context(
            runtime=runtime, options=self.options, store=store, registry=registry, admission=Admission(store)
        )
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
        yield self

"""The API server without a transport: a request in, a response out.

:meth:`ApiServer.handle` serves a request from start to end. Background work (garbage collection, ending namespaces,
expiring events) runs while the server is entered with :meth:`ApiServer.running`.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import structlog

from spinney.api.builtin_fields import field_table
from spinney.runtime import Runtime
from spinney.runtime.tasks import end
from spinney.server.about.discovery import discovery_paths, serve_discovery
from spinney.server.about.health import ENDPOINTS, HealthChecks, git_version, version_info
from spinney.server.about.metrics import ServerMetrics
from spinney.server.about.openapi import OpenApi
from spinney.server.about.openapi_v2 import OpenApiV2
from spinney.server.admission.calling import HttpsCaller, WebhookCaller
from spinney.server.admission.chain import AdmissionChain, MutatingPlugin
from spinney.server.admission.policies import AdmissionPolicies
from spinney.server.admission.webhooks import Webhooks
from spinney.server.authentication.authenticator import Authenticator
from spinney.server.authentication.tokens import token_issuer
from spinney.server.authorization.action import AccessRequest, action
from spinney.server.authorization.authorizer import AlwaysAllow, Authorizer, Rbac
from spinney.server.authorization.impersonation import completed, impersonated, mode, needed
from spinney.server.background.deadlines import EventExpiry
from spinney.server.background.device_claims import ResourceClaimController
from spinney.server.background.endings import Endings
from spinney.server.background.garbage import GarbageCollector
from spinney.server.background.orphaned_pods import OrphanedPods
from spinney.server.background.protection import InUseProtection
from spinney.server.background.taint_eviction import TaintEviction
from spinney.server.background.upkeep import Aggregation, NamespaceDefaults, QuotaKeeping
from spinney.server.builtin.table import builtin_kinds
from spinney.server.crd.definitions import COLLECTION, DefinedKinds, definition_kind
from spinney.server.exchange.message import Request, Response, User
from spinney.server.exchange.responding import failure, reply_json
from spinney.server.exchange.status import StatusError, bad_request, internal_error, method_not_allowed, no_such_path
from spinney.server.kinds import KindRegistry
from spinney.server.operations.bootstrap import bootstrap, bootstrap_roles
from spinney.server.operations.context import Context, Trust
from spinney.server.options import ServerOptions
from spinney.server.rest.resources import serve_resource
from spinney.server.store import ChangeNotKept, Journal, Store

log = structlog.get_logger()


class ApiServer:
    """One embedded cluster's API. ``webhooks`` carries admission reviews; by default they go over HTTPS."""

    def __init__(
        self, runtime: Runtime, options: ServerOptions | None = None, *, webhooks: WebhookCaller | None = None
    ) -> None:
        self.options = options or ServerOptions()
        self.runtime = runtime
        tokens = token_issuer(self.options.data_directory)  # may refuse to start, so before the journal is opened
        self._journal = Journal(self.options.data_directory / "journal") if self.options.data_directory else None
        store = Store(history=self.options.history, journal=self._journal)
        registry = KindRegistry([*builtin_kinds(self.options.gangs), definition_kind()])
        for kind in registry:
            store.open(kind.storage, kind.storage_version, kind.field_values)
        self._webhooks = Webhooks(runtime, store, registry, webhooks or HttpsCaller(self.options.service_addresses))
        authorizer: Authorizer = Rbac(store) if self.options.authorization == "RBAC" else AlwaysAllow()
        quotas = QuotaKeeping(store, runtime.clock)
        self.context = Context(
            runtime=runtime,
            options=self.options,
            store=store,
            registry=registry,
            fields=field_table(self.options.kubernetes_version),
            admission=AdmissionChain(
                runtime=runtime,
                store=store,
                policies=AdmissionPolicies(store, registry),
                webhooks=self._webhooks,
                authorizer=authorizer,
                book=quotas.book,
            ),
            authorizer=authorizer,
            authenticator=Authenticator(runtime, store, tokens),
            tokens=tokens,
            trust=Trust(),
        )
        DefinedKinds(store, registry)
        version = git_version(self.options.kubernetes_version)
        self._openapi = OpenApi(registry, self.context.fields, version)
        self._openapi_v2 = OpenApiV2(registry, self._openapi.documents, version)
        self._metrics = ServerMetrics(store, registry, version)
        self._broken: set[str] = set()  # background work that has stopped
        self._namespace_defaults = NamespaceDefaults(self.context)
        aggregation = Aggregation(self.context)
        self._work = (
            GarbageCollector(self.context),
            Endings(self.context),
            EventExpiry(self.context),
            InUseProtection(self.context),
            ResourceClaimController(self.context),
            OrphanedPods(self.context),
            TaintEviction(self.context),
            self._namespace_defaults,
            aggregation,
            quotas,
        )
        names = [type(work).__name__ for work in self._work]
        background = {f"background/{name}": lambda name=name: name not in self._broken for name in names}
        journal = self._journal
        storing = {"ping": lambda: True, "etcd": lambda: journal is None or journal.keeping}
        self._health = HealthChecks({**storing, **background})
        if self._journal is None or not self._journal.restore(store, first=COLLECTION):
            bootstrap(self.context)
        try:
            if authorizer.restricts:
                bootstrap_roles(self.context)
                aggregation.settle()
        except ChangeNotKept as error:
            log.warning("the cluster can be read, and not changed", reason=error.message)
        self._namespace_defaults.restore_all()

    @property
    def authenticator(self) -> Authenticator:
        """Who knows whose a token is."""
        return self.context.authenticator

    @property
    def admits_anonymous(self) -> bool:
        """Whether a request without credentials is let in, as the anonymous user; roles decide what that one may do."""
        return self.context.authorizer.restricts

    def present_authority(self, authority: str) -> None:
        """Say by which certificate authority (PEM) clients know this server; every namespace tells its pods."""
        self.context.trust.authority = authority
        self._namespace_defaults.restore_all()

    def admit_with(self, plugin: MutatingPlugin) -> None:
        """Have writes changed in this process, as by a webhook that is asked last."""
        self.context.admission.plugins.append(plugin)

    def close(self) -> None:
        """Let go of the data directory, if there is one; requests may no longer be handled."""
        if self._journal is not None:
            self._journal.close()

    async def handle(self, request: Request) -> Response:
        """Answer a request; what goes wrong is answered too, as a ``Status``."""
        clock = self.runtime.clock
        began = clock.monotonic()
        return self._metrics.answered(request, await self._answer(request), clock.monotonic() - began)

    async def _answer(self, request: Request) -> Response:
        try:
            return await self._route(self._authorized(request))
        except StatusError as error:
            return failure(error)
        except RecursionError:
            return failure(bad_request("the object is nested too deeply"))
        except asyncio.CancelledError:
            raise
        except Exception as error:
            log.exception("request failed", method=request.method, path=request.path)
            return failure(internal_error(f"{type(error).__name__}: {error}"))

    def check(self, request: Request) -> None:
        """Raise a 401 or 403 if a request would be refused whatever its body says."""
        self._authorized(request)

    def _authorized(self, request: Request) -> Request:
        """Return the request in the name of whom it speaks for; raise a 403 if that, or itself, is not allowed."""
        wanted = impersonated(request.headers)
        if wanted is not None:
            self._check_impersonation(request, wanted)
            request = replace(request, user=completed(wanted))
        if self.context.authorizer.restricts:
            self._check(action(request, request.user))
        return request

    def _check_impersonation(self, request: Request, wanted: User) -> None:
        """Raise a 403 unless the user may speak for another; it names the right that Kubernetes looks for first."""
        if all(self.context.authorizer.decide(right).allowed for right in needed(request.user, wanted)):
            return
        refused = action(request, request.user)
        raise replace(refused, verb=f"impersonate-on:{mode(wanted)}:{refused.verb}").refusal()

    def _check(self, wanted: AccessRequest) -> None:
        decision = self.context.authorizer.decide(wanted)
        if not decision.allowed:
            raise wanted.refusal(decision.reason)

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
        if path == "/openapi/v2":
            return self._openapi_v2.serve(request)
        return self._serve_about_itself(request)

    def _serve_about_itself(self, request: Request) -> Response:
        """Answer how the server is, which it is, and what it has."""
        match request.path.rstrip("/"):
            case "":
                health = [f"/{each}{below}" for each in ENDPOINTS for below in ("", *self._health.paths())]
                others = ["/metrics", "/openapi/v2", *self._openapi.paths(), "/version"]
                return reply_json({"paths": sorted([*discovery_paths(self.context.registry), *health, *others])})
            case "/version":
                return reply_json(version_info(self.options.kubernetes_version))
            case "/metrics":
                return self._metrics.serve()
            case path if path.split("/")[1] in ENDPOINTS:
                return self._health.serve(request)
        raise no_such_path()

    @asynccontextmanager
    async def running(self) -> AsyncIterator["ApiServer"]:
        """Do the background work of the cluster while the block runs."""
        tasks = [asyncio.create_task(work.run(), name=type(work).__name__) for work in self._work]
        for task in tasks:
            task.add_done_callback(self._report)
        try:
            yield self
        finally:
            await end(*tasks)
            await self._webhooks.close()

    def _report(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._broken.add(task.get_name())
            log.error("background work of the embedded cluster has stopped", work=task.get_name(), exc_info=error)

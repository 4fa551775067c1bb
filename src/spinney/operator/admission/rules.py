"""Admission: defaulting and validating what users write, before it is stored.

:meth:`Admission.answer` takes the body of an AdmissionReview and the path it was posted to and returns the review with
its answer; how it travels is not decided here. A PodCliqueSet is first held to the rules of its kind
(:mod:`spinney.api.schema`), then its backend is asked: reject, accept, or accept and say what will not be honoured,
which the user sees as warnings. Its time to answer is bounded and shorter than the API server's patience, so that
the user learns which backend does not answer.

An update that leaves the spec alone is answered without looking into it: labels and finalizers can always change, so
that deletion never hangs on a backend that is no longer enabled, or on a spec that today's rules would refuse.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import msgspec
import structlog

from spinney.api.admission import (
    AdmissionRequest,
    AdmissionResponse,
    AdmissionReview,
    AdmissionStatus,
    allowed,
    reviewed,
)
from spinney.api.field_error import FieldError, FieldPath, invalid
from spinney.api.grove import PodCliqueSet
from spinney.api.merge_patch import pointer
from spinney.api.schema.defaults import default_pod_clique_set
from spinney.api.schema.validate_pod_clique_set import (
    AdmissionPolicy,
    pod_clique_set_warnings,
    validate_metadata_update,
    validate_pod_clique_set,
)
from spinney.api.schema.validate_size import DEFAULT_LIMITS, SizeLimits, validate_size
from spinney.api.schema.validate_topology_binding import validate_topology_binding
from spinney.api.struct import JSON, convert, encode, to_json
from spinney.api.topology_binding import ClusterTopologyBinding
from spinney.backends.interface import Degradation, Rejected, SchedulerBackend
from spinney.backends.registry import Registry
from spinney.backends.verdicts import verdict
from spinney.kube.keys import Key
from spinney.operator.admission.authorization import WriteAuthorizer
from spinney.operator.caches import Caches
from spinney.operator.desired.auxiliary import NO_STARTUP_ORDER, has_startup_order
from spinney.operator.desired.gangs import expected_gangs
from spinney.operator.desired.layout import Layout, scheduler_name
from spinney.operator.owned.taken_names import taken_names
from spinney.runtime import Executor
from spinney.runtime.faults import raised_later, told

log = structlog.get_logger()

DEFAULT_SET: Final = "/webhooks/default-podcliqueset"
VALIDATE_SET: Final = "/webhooks/validate-podcliqueset"
VALIDATE_TOPOLOGY: Final = "/webhooks/validate-clustertopology"
AUTHORIZE: Final = "/webhooks/authorizer-webhook"

BACKEND_SECONDS: Final = 7.0
"""How long a backend may think about a set; the API server waits for 10 s, and then names only the webhook."""

MAX_TAKEN: Final = 3
"""How many names that another set has are told: one is enough to see what to rename."""

_STARTUP_TYPE: Final = FieldPath("spec.template.cliqueStartupType")
BAD_REQUEST, FORBIDDEN, UNPROCESSABLE, INTERNAL, TIMEOUT = 400, 403, 422, 500, 504


class BackendFailed(RuntimeError):
    """A backend could not judge a set; the message names both."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class AdmissionVerdict:
    """What becomes of a request."""

    faults: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()
    patch: tuple[JSON, ...] = ()


class Admission:
    """Answers admission reviews from the operator's caches and backends."""

    paths: Final = (DEFAULT_SET, VALIDATE_SET, VALIDATE_TOPOLOGY, AUTHORIZE)

    def __init__(
        self,
        caches: Caches,
        registry: Registry,
        executor: Executor,
        *,
        limits: SizeLimits = DEFAULT_LIMITS,
        mnnvl_enabled: bool = False,
        startup_order: bool = True,
        authorizer: WriteAuthorizer | None = None,
    ) -> None:
        self._caches = caches
        self._registry = registry
        self._executor = executor
        self._limits = limits
        self._mnnvl_enabled = mnnvl_enabled
        self._startup_order = startup_order
        self._authorizer = authorizer
        self._answers: dict[str, Callable[[AdmissionRequest], Awaitable[AdmissionVerdict]]] = {
            DEFAULT_SET: self._default_set,
            VALIDATE_SET: self._validate_set,
            VALIDATE_TOPOLOGY: self._validate_topology,
        }

    async def answer(self, path: str, body: bytes) -> bytes:
        """Return the review with its answer; a body that is no review raises :class:`msgspec.DecodeError`."""
        return encode(AdmissionReview(response=await self._respond(path, reviewed(body))))

    async def _respond(self, path: str, request: AdmissionRequest) -> AdmissionResponse:
        if path == AUTHORIZE:
            return self._authorize(request)
        try:
            verdict = await self._answers[path](request)
        except msgspec.ValidationError as error:
            return _refused(request, BAD_REQUEST, f"the object does not have the expected shape: {error}")
        except BackendFailed as error:
            log.warning("backend could not judge", name=request.name, namespace=request.namespace, error=str(error))
            return _refused(request, error.code, str(error))
        except raised_later() as error:
            log.exception("admission failed", path=path, name=request.name, namespace=request.namespace)
            return _refused(request, INTERNAL, f"{type(error).__name__}: {error}")
        if verdict.faults:
            return _invalid(request, verdict)
        return allowed(request, verdict.patch, verdict.warnings)

    # -- PodCliqueSet --------------------------------------------------------------------------------------------------

    async def _default_set(self, request: AdmissionRequest) -> AdmissionVerdict:
        if _leaves_spec_alone(request):
            return AdmissionVerdict()
        written = request.object or {}
        try:
            pcs = convert(PodCliqueSet, written)
        except msgspec.ValidationError:
            return AdmissionVerdict()  # the API server refuses it next, by its schema and with the path of every fault
        defaulted = to_json(default_pod_clique_set(pcs))
        return AdmissionVerdict(patch=tuple(differences(written.get("spec"), defaulted["spec"], "/spec")))

    async def _validate_set(self, request: AdmissionRequest) -> AdmissionVerdict:
        if request.operation not in {"CREATE", "UPDATE"}:
            return AdmissionVerdict()
        if request.sub_resource:
            return self._validate_scale(request)
        if _leaves_spec_alone(request):
            return AdmissionVerdict(
                tuple(validate_metadata_update(*map(_annotations, (request.object, request.old_object))))
            )
        pcs = convert(PodCliqueSet, request.object)
        old = convert(PodCliqueSet, request.old_object) if request.old_object is not None else None
        policy = self._policy()
        # A set may be megabytes of text; the loop meanwhile renews the lease.
        faults = await self._executor.run(validate_pod_clique_set, pcs, policy, old)
        if not self._startup_order:
            faults = [*faults, *refused_startup_order(pcs)]
        if faults or (old is not None and old.spec == pcs.spec):
            return AdmissionVerdict(tuple(faults))
        backend = self._registry.named_or_default(scheduler_name(pcs))
        assert backend is not None, "the rules let only enabled schedulers pass"
        try:
            degradations = await _judged(backend, pcs, old)
        except Rejected as rejected:
            return AdmissionVerdict((invalid(FieldPath(rejected.path), backend.name, str(rejected)),))
        warnings = [*pod_clique_set_warnings(pcs, policy, old), *self._taken(pcs), *map(str, degradations)]
        return AdmissionVerdict(warnings=tuple(warnings))

    def _validate_scale(self, request: AdmissionRequest) -> AdmissionVerdict:
        """Judge new replicas of a set; the set itself is not in the review, and the controller looks again anyway."""
        pcs = self._caches.sets.get(Key(request.namespace, request.name))
        replicas = ((request.object or {}).get("spec") or {}).get("replicas")
        if pcs is None or replicas is None:
            return AdmissionVerdict()
        scaled = msgspec.structs.replace(pcs.spec, replicas=replicas)
        return AdmissionVerdict(tuple(validate_size(scaled, self._limits, pcs.spec)))

    def _taken(self, pcs: PodCliqueSet) -> list[str]:
        """Return which names of a set another one has, as far as is known: then it is stored and does not come up."""
        if not pcs.metadata.name:
            return []
        layout = Layout(pcs)
        return list(islice(taken_names(layout, expected_gangs(layout, {}), self._caches), MAX_TAKEN))

    def _policy(self) -> AdmissionPolicy:
        return AdmissionPolicy(
            schedulers=tuple(self._registry.names()),
            default_scheduler=self._registry.get_default().name,
            topology_aware=self._caches.topology_enabled,
            topologies={binding.metadata.name: binding for binding in self._caches.bindings.values()},
            mnnvl=self._mnnvl_enabled,
            limits=self._limits,
        )

    # -- the others ----------------------------------------------------------------------------------------------------

    async def _validate_topology(self, request: AdmissionRequest) -> AdmissionVerdict:
        if request.operation not in {"CREATE", "UPDATE"}:
            return AdmissionVerdict()
        if _leaves_spec_alone(request):
            return AdmissionVerdict()
        binding = convert(ClusterTopologyBinding, request.object)
        aware = list(self._registry.topology_aware())
        return AdmissionVerdict(
            tuple(validate_topology_binding(binding, schedulers=self._registry.names(), topology_aware=aware))
        )

    def _authorize(self, request: AdmissionRequest) -> AdmissionResponse:
        if self._authorizer is None:
            return allowed(request)
        refusal, warnings = self._authorizer.judge(request)
        if refusal is not None:
            return _refused(request, FORBIDDEN, refusal)
        return allowed(request, warnings=warnings)


async def _judged(backend: SchedulerBackend, pcs: PodCliqueSet, old: PodCliqueSet | None) -> list[Degradation]:
    """Ask a backend within :data:`BACKEND_SECONDS`; whatever it raises but a refusal is told with its name."""
    about = f"scheduler backend {backend.name!r} could not judge PodCliqueSet {pcs.metadata.namespace}/{_name(pcs)}"
    try:
        async with asyncio.timeout(BACKEND_SECONDS) as limit:
            return await verdict(backend, pcs, old)
    except Rejected:
        raise
    except raised_later() as error:
        if limit.expired():
            text = f"no answer within {BACKEND_SECONDS:.0f} s; try again, and see whether its scheduler is healthy"
            raise BackendFailed(f"{about}: {text}", TIMEOUT) from error
        raise BackendFailed(f"{about}: {told(error)}", INTERNAL) from error


def _name(pcs: PodCliqueSet) -> str:
    return pcs.metadata.name or f"{pcs.metadata.generate_name}*"


def _leaves_spec_alone(request: AdmissionRequest) -> bool:
    """Tell whether an update is about metadata only; compared as it came, for what is stored may not decode."""
    new, old = request.object, request.old_object
    return request.operation == "UPDATE" and new is not None and old is not None and new.get("spec") == old.get("spec")


def _annotations(obj: JSON | None) -> Mapping[str, str]:
    return ((obj or {}).get("metadata") or {}).get("annotations") or {}


def refused_startup_order(pcs: PodCliqueSet) -> list[FieldError]:
    """Return the fault of a set that has a start-up order, for an operator where that is switched off."""
    if not has_startup_order(Layout(pcs)):
        return []
    return [invalid(_STARTUP_TYPE, pcs.spec.template.clique_startup_type, NO_STARTUP_ORDER)]


def differences(written: Any, wanted: Any, path: str) -> Iterator[JSON]:
    """Yield the JSON patch that adds what is missing and replaces what differs; nothing is ever removed."""
    if isinstance(written, dict) and isinstance(wanted, dict):
        for key, value in wanted.items():
            place = pointer(path, key)
            if key not in written:
                yield {"op": "add", "path": place, "value": value}
            else:
                yield from differences(written[key], value, place)
    elif isinstance(written, list) and isinstance(wanted, list) and len(written) == len(wanted):
        for index, (one, other) in enumerate(zip(written, wanted, strict=True)):
            yield from differences(one, other, f"{path}/{index}")
    elif written != wanted:
        yield {"op": "replace", "path": path, "value": wanted}


def filled(written: Any, wanted: Any) -> Any:
    """Return what :func:`differences` makes of what was written."""
    if isinstance(written, dict) and isinstance(wanted, dict):
        return written | {key: filled(written.get(key, value), value) for key, value in wanted.items()}
    if isinstance(written, list) and isinstance(wanted, list) and len(written) == len(wanted):
        return [filled(one, other) for one, other in zip(written, wanted, strict=True)]
    return wanted


def _invalid(request: AdmissionRequest, verdict: AdmissionVerdict) -> AdmissionResponse:
    message = "; ".join(str(fault) for fault in verdict.faults)
    details = {
        "name": request.name,
        "group": request.kind.group,
        "kind": request.kind.kind,
        "causes": [fault.cause() for fault in verdict.faults],
    }
    status = AdmissionStatus(message=message, reason="Invalid", code=UNPROCESSABLE, details=details)
    return AdmissionResponse(uid=request.uid, allowed=False, status=status, warnings=verdict.warnings)


def _refused(request: AdmissionRequest, code: int, message: str) -> AdmissionResponse:
    reasons = {BAD_REQUEST: "BadRequest", FORBIDDEN: "Forbidden", INTERNAL: "InternalError", TIMEOUT: "Timeout"}
    status = AdmissionStatus(message=message, reason=reasons[code], code=code)
    return AdmissionResponse(uid=request.uid, allowed=False, status=status)

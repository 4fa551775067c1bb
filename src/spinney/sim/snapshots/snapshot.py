"""A cluster at one moment, as a value: what scheduling reads of it, and what could not be seen.

A snapshot holds *projections*: objects decoded into the types the schedulers read, so whatever scheduling does not look
at (environment variables, arguments, probes, mounted secrets) was never taken in and cannot leave in a file. Kinds that
the cluster does not serve, or that the caller may not list, are noted instead of failing.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import msgspec

from spinney.api import kueue
from spinney.api.core import NODE, POD, Node, Pod, PodSpec
from spinney.api.grove import POD_CLIQUE, POD_CLIQUE_SET, PodClique, PodCliqueSet
from spinney.api.kai import BIND_REQUEST, BindRequest
from spinney.api.resource import Resource
from spinney.api.struct import JSON, Struct, changed, convert, to_json, without_nulls
from spinney.kube.client import Client
from spinney.kube.discovery import served
from spinney.kube.errors import Expired, Forbidden, InternalError, NotFound
from spinney.kube.pages import Page
from spinney.runtime.tasks import together
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.intake.sources import OPTIONAL_KINDS

T = TypeVar("T")

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""What kubectl keeps of a manifest, environment and all; it never becomes part of a snapshot."""


KINDS: Final[Mapping[Resource, type[Any]]] = {
    NODE: Node,
    POD: Pod,
    **OPTIONAL_KINDS,
    BIND_REQUEST: BindRequest,
    POD_CLIQUE_SET: PodCliqueSet,
    POD_CLIQUE: PodClique,
    kueue.CLUSTER_QUEUE: kueue.ClusterQueue,
    kueue.COHORT: kueue.Cohort,
    kueue.LOCAL_QUEUE: kueue.LocalQueue,
    kueue.WORKLOAD: kueue.Workload,
}
"""Every kind a snapshot may hold, in the order it is taken."""

BY_NAME: Final[Mapping[tuple[str, str], Resource]] = {
    **{(each.api_version, each.kind): each for each in KINDS},
    **{(former.api_version, former.kind): each for each, former in kueue.FORMER.items()},
}
"""The same by ``apiVersion`` and ``kind``; an object of an older version is held among those of the current one."""


FORBIDDEN: Final = "may not be listed"
FAILED: Final = "cannot be listed"
_AT_ONCE: Final = 12
"""Kinds that are listed at the same time: a busy cluster, or one far away, answers thirty questions in the time of
three."""
_PAGE: Final = 10_000
"""Objects in one answer: a busy API server makes each request wait, so a large cluster is read with few."""


class Unseen(Struct, frozen=True, kw_only=True):
    """Something a snapshot lacks, and why; an answer computed from the snapshot may be wrong because of it."""

    what: str
    reason: str
    detail: str = ""
    """What the server said."""

    def __str__(self) -> str:
        return f"{self.what}: {self.reason}"


class Objects(Protocol):
    """Whatever has a cluster's objects by kind: a snapshot, or a simulation that goes on from one."""

    def of(self, resource: Resource, _kind: type[T]) -> tuple[T, ...]:
        """Return the objects of one kind."""
        ...


@dataclass(frozen=True, kw_only=True)
class ClusterSnapshot:
    """Objects by kind, each kind in the order the cluster listed it."""

    objects: Mapping[Resource, tuple[Any, ...]] = field(default_factory=dict)
    unseen: tuple[Unseen, ...] = ()
    taken: datetime | None = None
    source: str = ""
    """Where it comes from: a server, a file."""
    scheduler: SchedulerConfig | None = None
    """How the cluster's own scheduler is configured, where the source says so."""

    def of(self, resource: Resource, _kind: type[T]) -> tuple[T, ...]:
        """Return the objects of one kind."""
        return self.objects.get(resource, ())

    @property
    def pods(self) -> tuple[Pod, ...]:
        return self.of(POD, Pod)

    @property
    def nodes(self) -> tuple[Node, ...]:
        return self.of(NODE, Node)

    def sees(self, resource: Resource) -> bool:
        """Tell whether the kind was listed, however many objects there were."""
        return resource in self.objects

    def refused(self, resource: Resource) -> bool:
        """Tell whether the kind is there, but the API server would not list it for the user who took the snapshot."""
        return any(
            each.what == str(resource) and (each.reason == FORBIDDEN or each.reason.startswith(FAILED))
            for each in self.unseen
        )

    def with_objects(self, more: Iterable[Any]) -> "ClusterSnapshot":
        """Return a snapshot that also has ``more``; one of the same kind, namespace and name is replaced."""
        objects = {resource: {identity(each): each for each in found} for resource, found in self.objects.items()}
        for each in more:
            objects.setdefault(resource_of(each), {})[identity(each)] = each
        return replace(self, objects={resource: tuple(found.values()) for resource, found in objects.items()})

    def without_objects(self, gone: Iterable[Any]) -> "ClusterSnapshot":
        """Return a snapshot that lacks ``gone``."""
        names = {(resource_of(each), identity(each)) for each in gone}
        kinds = {resource for resource, _ in names}
        objects = {
            resource: tuple(each for each in found if resource not in kinds or (resource, identity(each)) not in names)
            for resource, found in self.objects.items()
        }
        return replace(self, objects=objects)


class Differing(NamedTuple):
    """An object that two snapshots hold differently; ``None`` where one of them lacks it."""

    resource: Resource
    identity: tuple[str | None, str]
    old: Any
    new: Any


def differing(before: ClusterSnapshot, after: ClusterSnapshot) -> Iterator[Differing]:
    """Yield what turns one snapshot into another that was made from it: of each kind what is gone, then the rest."""
    for resource in dict.fromkeys((*before.objects, *after.objects)):
        old = {identity(each): each for each in before.objects.get(resource, ())}
        new = {identity(each): each for each in after.objects.get(resource, ())}
        yield from (Differing(resource, name, each, None) for name, each in old.items() if name not in new)
        for name, each in new.items():
            if old.get(name) is not each:
                yield Differing(resource, name, old.get(name), each)


def resource_of(found: Any) -> Resource:
    """Return which kind an object of a snapshot is of; raises ``KeyError`` for one that snapshots do not hold."""
    return BY_NAME[found.api_version, found.kind]


def projected(resource: Resource, found: JSON) -> Any:
    """Decode an object as snapshots hold it; raises :class:`msgspec.ValidationError`."""
    return sanitised(convert(KINDS[resource], found))


def sanitised(found: Any) -> Any:
    """Return an object without what scheduling never reads: field managers, kubectl's copy, what containers run."""
    metadata = found.metadata
    changes: dict[str, Any] = {}
    if LAST_APPLIED in metadata.annotations:
        changes["annotations"] = {key: text for key, text in metadata.annotations.items() if key != LAST_APPLIED}
    if getattr(metadata, "managed_fields", ()):
        changes["managed_fields"] = ()
    if changes:
        found = changed(found, metadata=changes)
    if isinstance(found, PodClique):
        return msgspec.structs.replace(found, spec=_without_commands(found.spec))
    if isinstance(found, PodCliqueSet):
        template = found.spec.template
        cliques = tuple(
            msgspec.structs.replace(clique, spec=_without_commands(clique.spec)) for clique in template.cliques
        )
        return changed(found, spec={"template": msgspec.structs.replace(template, cliques=cliques)})
    return found


async def take(
    client: Client,
    *,
    namespace: str | None = None,
    source: str = "",
    on_kind: Callable[[Resource], None] = lambda _: None,
) -> ClusterSnapshot:
    """List every kind that snapshots hold; ``on_kind`` is called with each before it is listed. Only reads.

    Where pods may not be listed over all namespaces, those of ``namespace`` are, and the rest is noted as unseen. What
    the cluster serves is asked meanwhile: a server answers "forbidden" also about a kind that it does not have.
    """
    taken = client.runtime.clock.now()
    turns = asyncio.Semaphore(_AT_ONCE)

    async def look(resource: Resource) -> _Seen:
        async with turns:
            on_kind(resource)
            return await _seen(client, resource, KINDS[resource], namespace)

    asked = served(client, (*KINDS, *kueue.FORMER.values()))
    known, answers = await together(asked, together(*map(look, KINDS)))
    seen = {resource: each for resource, each in zip(KINDS, answers, strict=True) if resource in known}
    for resource, former in kueue.FORMER.items():
        if resource not in known and former in known:
            seen[resource] = await _seen(client, former, KINDS[resource], namespace)
    return ClusterSnapshot(
        objects={resource: each.objects for resource, each in seen.items() if each.objects is not None},
        unseen=tuple(unseen for each in seen.values() for unseen in each.unseen),
        taken=taken,
        source=source,
    )


@dataclass(frozen=True)
class _Seen:
    """What listing one kind gave."""

    objects: tuple[Any, ...] | None
    """``None``: the kind went away, or may not be listed."""
    unseen: tuple[Unseen, ...] = ()


async def _seen(client: Client, resource: Resource, kind: type[Any], namespace: str | None) -> _Seen:
    """List one kind: everywhere, or where that may not be, in ``namespace``."""
    try:
        return await _listed(client, resource, kind, None)
    except NotFound:
        return _Seen(None)  # its CRD went while we looked
    except InternalError as failure:
        if resource in (NODE, POD):  # there is nothing to say without them
            raise
        return _Seen(None, (failed(resource, failure),))
    except Forbidden as refusal:
        if namespace is None or not resource.namespaced:
            return _Seen(None, (forbidden(resource, refusal),))
    try:
        here = await _listed(client, resource, kind, namespace)
    except Forbidden as refusal:
        return _Seen(None, (forbidden(resource, refusal),))
    elsewhere = Unseen(what=str(resource), reason=f"{FORBIDDEN} outside namespace {namespace}")
    return _Seen(here.objects, (*here.unseen, elsewhere))


def forbidden(resource: Resource, refusal: Forbidden) -> Unseen:
    """Return that a kind may not be listed."""
    return Unseen(what=str(resource), reason=FORBIDDEN, detail=" ".join(str(refusal).split()))


def failed(resource: Resource, failure: InternalError) -> Unseen:
    """Return that an API server cannot list a kind, such as one whose conversion webhook is away."""
    return Unseen(what=str(resource), reason=f"{FAILED}: {' '.join(str(failure).split())}")


async def _listed(client: Client, resource: Resource, kind: type[Any], namespace: str | None) -> _Seen:
    try:
        return await _read(client.pages(resource, namespace, type=kind, limit=_PAGE), resource)
    except Expired:  # between two pages; one request for everything cannot expire
        return await _read(client.pages(resource, namespace, type=kind, limit=0), resource)


async def _read(pages: AsyncIterator[Page[Any]], resource: Resource) -> _Seen:
    found: list[Any] = []
    unseen: list[Unseen] = []

    def leave_out(namespace: str | None, name: str, problem: str) -> None:
        unseen.append(Unseen(what=f"{resource} {namespace or ''}/{name}".replace(" /", " "), reason=problem))

    async for page in pages:
        for each in page.undecodable:
            leave_out(each.namespace, each.name, each.problem)
        for item in page.items:
            try:
                found.append(sanitised(item))
            except msgspec.ValidationError as error:
                leave_out(item.metadata.namespace, item.metadata.name, f"cannot be read: {error}")
    return _Seen(tuple(found), tuple(unseen))


def _without_commands(spec: Any) -> Any:
    return msgspec.structs.replace(spec, pod_spec=to_json(convert(PodSpec, without_nulls(spec.pod_spec))))


def identity(found: Any) -> tuple[str | None, str]:
    """Return what tells objects of one kind apart."""
    return found.metadata.namespace, found.metadata.name

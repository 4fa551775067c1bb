"""A cluster as it changes: what commands read once with a snapshot, kept up to date by watches.

What a change costs does not grow with the cluster: watch events go into the schedulers' own inventory. A command that
follows is shown the state after each burst of changes, and drawing it takes at most a part of the time.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from spinney.api.core import EVENT, NODE, POD, Pod
from spinney.api.events import Event
from spinney.api.grove import POD_CLIQUE, POD_CLIQUE_SET
from spinney.api.resource import Resource
from spinney.binding.moving import GangMover
from spinney.kube.cache import Change, WatchCache
from spinney.kube.discovery import served
from spinney.kube.errors import Forbidden, InternalError
from spinney.runtime.tasks import in_background, together
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.intake.sources import OPTIONAL_KINDS
from spinney.sim.overview.gang_table import GangLine, GangTable
from spinney.sim.overview.history import UNGROUPED
from spinney.sim.snapshots.snapshot import FORBIDDEN, KINDS, ClusterSnapshot, Unseen, failed, forbidden
from spinney.sim.whatif.loading import take_in

if TYPE_CHECKING:
    from spinney.cli.clusters.connecting import Connection

_REFRESH: Final = 0.2
"""Seconds between two states at least; events in between are gathered."""
_SHARE: Final = 4
"""Of the time, at most one part in so many goes into what is done with a state."""
_NEEDED: Final = (NODE, POD)
_SHOWN_ONLY: Final = (POD_CLIQUE_SET, POD_CLIQUE, EVENT)
_TYPES: Final[Mapping[Resource, type[Any]]] = {**KINDS, EVENT: Event}
_KINDS: Final = (*_NEEDED, *OPTIONAL_KINDS, *_SHOWN_ONLY)


class Followed:
    """A cluster that is being watched. Mutable: watches write, the event loop reads."""

    def __init__(self, connection: "Connection", caches: Collection[WatchCache[Any]], unseen: Iterable[Unseen]) -> None:
        self._source = connection.source
        self._client = connection.client
        self._clock = connection.client.runtime.clock
        self._caches = caches
        self._unseen = tuple(unseen)
        self._table = GangTable()
        self.inventory = Inventory(())
        self.changed = asyncio.Event()
        for cache in caches:
            cache.subscribe((lambda _: self.changed.set()) if cache.resource in _SHOWN_ONLY else self._take)

    def mover(
        self, nodes: Collection[str], *, tell: Callable[[str], None], gang_seconds: float, asks: bool = True
    ) -> GangMover:
        """Return what moves gangs off nodes of this cluster."""
        return GangMover(
            client=self._client,
            cluster=self.inventory.cluster,
            gangs=self.inventory.gangs,
            nodes=frozenset(nodes),
            changed=self.changed,
            tell=tell,
            gang_seconds=gang_seconds,
            asks=asks,
        )

    def snapshot(self) -> ClusterSnapshot:
        """Return the cluster as it is now."""
        objects = {cache.resource: tuple(cache.values()) for cache in self._caches if cache.synced}
        failing = tuple(failed(cache.resource, cache.failure) for cache in self._caches if cache.failure is not None)
        unseen = (*self._unseen, *failing)
        return ClusterSnapshot(objects=objects, unseen=unseen, taken=self._clock.now(), source=self._source)

    def gangs(self, snapshot: ClusterSnapshot, *, singles: bool = False) -> list[GangLine]:
        """Return the line of every gang, in order of namespace and name."""
        return self._table.lines(snapshot, self.inventory, singles=singles)

    async def states(self, *, within: float | None = None) -> AsyncIterator[ClusterSnapshot]:
        """Yield the cluster at once, and again after each burst of changes.

        ``within`` is how many seconds to wait for a change; then the cluster is yielded without one.
        """
        while True:
            self.changed.clear()
            began = self._clock.monotonic()
            yield self.snapshot()
            took = self._clock.monotonic() - began
            with suppress(TimeoutError):
                async with asyncio.timeout(within):
                    await self.changed.wait()
            await self._clock.sleep(max(_REFRESH, took * (_SHARE - 1)))

    def _take(self, change: Change[Any]) -> None:
        if isinstance(change.new, Pod):  # of any scheduler: it may be in a gang
            self.inventory.scheduler_names |= {change.new.spec.scheduler_name}
        if change.new is not None:
            take_in(self.inventory, change.new)
        elif change.old is not None:
            self.inventory.delete(change.old)
        self.changed.set()


@asynccontextmanager
async def following(connection: "Connection", namespace: str | None = None) -> AsyncIterator[Followed]:
    """Follow nodes, pods and everything that gangs are made of, for the time of the block.

    What may not be listed over all namespaces is followed in ``namespace`` alone, and the rest is noted as unseen.
    So is a kind that the API server fails to list, until it can: one object that cannot be converted is enough.
    Raises what the server says if nodes or pods may not be listed there either, or cannot be.
    """
    client = connection.client
    there = await served(client, _KINDS)
    kinds = [kind for kind in _KINDS if kind in there]
    reached = dict(zip(kinds, await together(*(_reach(connection, kind, namespace) for kind in kinds)), strict=True))
    unseen = [each.unseen for each in reached.values() if each.unseen is not None]
    caches: list[WatchCache[Any]] = [
        WatchCache(
            client,
            kind,
            _TYPES[kind],
            runtime=client.runtime,
            namespace=each.namespace,
            field_selector=f"reason={UNGROUPED}" if kind == EVENT else None,
        )
        for kind, each in reached.items()
        if each.listed
    ]
    followed = Followed(connection, caches, unseen)
    async with in_background(*(cache.run() for cache in caches)):
        for cache in caches:
            await cache.wait_for_answer()
            if cache.failure is not None and cache.resource in _NEEDED:
                raise cache.failure
        yield followed


class _Reach(NamedTuple):
    """How far a kind can be followed: everywhere, in a namespace, or not at all."""

    listed: bool = True
    namespace: str | None = None
    unseen: Unseen | None = None


async def _reach(connection: "Connection", kind: Resource, namespace: str | None) -> _Reach:
    """Return how far a kind may be followed: a cache would go on trying."""
    try:
        await _look(connection, kind, None)
    except Forbidden as refusal:
        if namespace is None or not kind.namespaced:
            return _refused(kind, refusal)
    else:
        return _Reach()
    try:
        await _look(connection, kind, namespace)
    except Forbidden as refusal:
        return _refused(kind, refusal)
    reason = f"{FORBIDDEN} outside namespace {namespace}"
    return _Reach(namespace=namespace, unseen=Unseen(what=str(kind), reason=reason))


async def _look(connection: "Connection", kind: Resource, namespace: str | None) -> None:
    """List one object of a kind: whether all can be listed, its cache says."""
    with suppress(InternalError):
        async for _ in connection.client.pages(kind, namespace, limit=1):
            break


def _refused(kind: Resource, refusal: Forbidden) -> _Reach:
    if kind in _NEEDED:
        raise refusal
    return _Reach(listed=False, unseen=forbidden(kind, refusal))

"""The owners of pods, read as rarely as possible.

Kinds with a rule are watched from when the first pod of theirs is met, so that a change of the workload regroups its
pods; of each object only what its rule reads is kept. Other kinds are not watched, as there may be any number of them:
their metadata is read once, and a few at a time again while pods of theirs wait. A kind that may not be read, or is not
served, is asked for again after a while. One whose version is withdrawn is read in another.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import msgspec
import structlog

from spinney.api.meta import OwnerReference
from spinney.api.resource import Resource
from spinney.grouping.owners import Owner, OwnerMissing, group_kind, missing, projection, replaced
from spinney.grouping.rules import POD_KIND, RuleSet
from spinney.kube.cache import Change, WatchCache
from spinney.kube.client import Client
from spinney.kube.discovery import find_kind
from spinney.kube.errors import ConnectionFailed, Forbidden, KubeError, NotFound
from spinney.kube.keys import Key
from spinney.kube.metrics import KubeMetrics

UNREADABLE_SECONDS: Final = 300.0
"""How long a kind that could not be read is not asked for again."""
BEHIND_SECONDS: Final = 0.05
"""How long the watch of a kind may take to bring an owner before that is read by itself."""
LISTED_SECONDS: Final = 10.0
"""How long the first list of a kind may take before its pods are looked at again later, and others meanwhile."""
MOST_OTHERS: Final = 10_000
"""How many owners of kinds without a rule are remembered."""
AGAIN_SECONDS: Final = 10.0
"""How often owners of kinds without a rule are read again, as long as pods of theirs wait."""
MOST_AGAIN: Final = 100
"""How many of them are read each time, those first that were read longest ago."""

log = structlog.get_logger()


class NotFetched(Exception):
    """An owner that has to be read before the climb can go on."""

    def __init__(self, reference: OwnerReference, namespace: str) -> None:
        super().__init__(f"{reference.kind} {namespace}/{reference.name}")
        self.reference = reference
        self.namespace = namespace


class NotListed(KubeError):
    """The objects of a kind could not be read whole yet; whoever looks again later may find them."""


@dataclass(frozen=True)
class _Served:
    """How a kind is served; ``None`` where it may not be read."""

    resource: Resource | None
    until: float = float("inf")


@dataclass
class OwnerCache:
    """Owners by kind, namespace and name. Mutable; :meth:`run` runs its watches."""

    client: Client
    rules: RuleSet
    changed: Callable[[Change[Owner]], None]
    """Told of changes of watched owners, and of those that were found when others were read again."""
    awaited: Callable[[str], bool] = lambda uid: False
    """Tells whether pods wait that have the object of this uid among their owners."""
    metrics: KubeMetrics = field(default_factory=KubeMetrics)
    _served: dict[str, _Served] = field(default_factory=dict)
    _caches: dict[str, WatchCache[Owner]] = field(default_factory=dict)
    _watching: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _withdrawn: dict[str, WatchCache[Owner]] = field(default_factory=dict)
    """What was last known of kinds in a version that is no longer served."""
    _others: dict[tuple[str, str, str], Owner] = field(default_factory=dict)
    _starting: dict[str, asyncio.Lock] = field(default_factory=dict)
    _types: dict[str, type[Owner]] = field(default_factory=dict)
    _learning: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _arrivals: dict[tuple[str, str, str], asyncio.Future[None]] = field(default_factory=dict)
    _running: asyncio.Event = field(default_factory=asyncio.Event)
    _watches: asyncio.TaskGroup | None = None

    def __post_init__(self) -> None:
        self._paths = self.rules.watched()

    async def run(self) -> None:
        """Run the watches until cancelled."""
        async with asyncio.TaskGroup() as watches:
            self._watches = watches
            self._running.set()
            while True:
                await self.client.runtime.clock.sleep(AGAIN_SECONDS)
                await self._read_again()

    def find(self, reference: OwnerReference, namespace: str) -> Owner | None:
        """Return an owner, ``None`` if it may not be read; raises :class:`NotFetched` where it has to be read first."""
        kind = group_kind(reference.api_version, reference.kind)
        served = self._served.get(kind)
        if served is None or (served.resource is None and served.until < self._now):
            raise NotFetched(reference, namespace)
        if served.resource is None:
            return None
        key = _key(served.resource, namespace, reference.name)
        cache = self._caches.get(kind)
        found = cache.get(key) if cache is not None else None
        if found is not None and (not reference.uid or found.metadata.uid == reference.uid):
            return found
        other = self._others.get((kind, *key))
        if other is None or (reference.uid and other.metadata.uid != reference.uid):
            raise NotFetched(reference, namespace)
        return other

    async def fetch(self, wanted: NotFetched) -> None:
        """Read an owner, and watch its kind if that has a rule; raises :class:`OwnerMissing`, :class:`NotListed`."""
        reference, namespace = wanted.reference, wanted.namespace
        kind = group_kind(reference.api_version, reference.kind)
        async with self._starting.setdefault(kind, asyncio.Lock()):
            served = self._served.get(kind)
            if served is None or served.until < self._now:
                served = self._served[kind] = await self._look_for(kind, reference)
        if served.resource is None:
            return
        key = _key(served.resource, namespace, reference.name)
        cache = self._caches.get(kind)
        known = cache.get(key) if cache is not None else None
        if known is not None and (not reference.uid or known.metadata.uid == reference.uid):
            return
        if cache is not None and await self._arrives(kind, key):
            return
        try:
            found = await self.client.get(
                served.resource,
                reference.name,
                namespace if served.resource.namespaced else None,
                type=self._type(kind, served.resource),
            )
        except NotFound as error:
            self._forget(kind, key)
            if await self._is_served(served.resource):
                raise missing(reference) from error
            self._withdraw(kind, served)
            return
        except Forbidden:
            self._served[kind] = _Served(None, self._now + UNREADABLE_SECONDS)
            return
        if reference.uid and found.metadata.uid != reference.uid:
            self._forget(kind, key)
            raise replaced(reference, found)
        while len(self._others) >= MOST_OTHERS:
            del self._others[next(iter(self._others))]
        self._others[(kind, *key)] = found

    async def _read_again(self) -> None:
        """Read owners that are not watched once more, and tell of those that changed."""
        due = [place for place, owner in self._others.items() if self._is_due(place, owner)]
        for place in due[:MOST_AGAIN]:
            kind, namespace, name = place
            old, served = self._others.get(place), self._served.get(kind)
            if old is None or served is None or served.resource is None:
                continue
            new, key = old, Key(namespace, name)
            try:
                new = await self.client.get(
                    served.resource, name, namespace or None, type=self._type(kind, served.resource)
                )
            except ConnectionFailed as error:
                log.debug("owners could not be read again", error=str(error))
                return  # no other can be read either, and all of them are due the next time
            except KubeError as error:
                log.debug("an owner could not be read again", kind=kind, owner=str(key), error=str(error))
            if self._others.get(place) is old and new.metadata.uid == old.metadata.uid:
                del self._others[place]
                self._others[place] = new
                self.changed(Change(key, old, new, new.metadata.resource_version or ""))

    def _is_due(self, place: tuple[str, str, str], owner: Owner) -> bool:
        kind, _, _ = place
        return kind != POD_KIND and kind not in self._caches and self.awaited(owner.metadata.uid or "")

    async def _arrives(self, kind: str, key: Key) -> bool:
        """Tell whether a watch that is a moment behind brings an owner, which may be as new as its pods."""
        arrival = self._arrivals.setdefault((kind, *key), asyncio.get_running_loop().create_future())
        try:
            arrived, _ = await asyncio.wait({arrival}, timeout=BEHIND_SECONDS)
        finally:
            self._arrivals.pop((kind, *key), None)
        return bool(arrived)

    def _changed(self, kind: str, change: Change[Owner]) -> None:
        self._forget(kind, change.key)
        arrival = self._arrivals.get((kind, *change.key))
        if arrival is not None and not arrival.done() and change.new is not None:
            arrival.set_result(None)

    def serves(self, wanted: NotFetched) -> bool:
        """Tell whether it is known how the kind of an owner is served, so that one read brings the owner."""
        served = self._served.get(_kind(wanted))
        return served is not None and served.until >= self._now

    async def learn(self, wanted: NotFetched) -> None:
        """Find out how the kind of an owner is served, if it has a rule; goes on when the caller waits no longer."""
        kind = _kind(wanted)
        if self._watches is None or kind not in self._paths:
            return
        if kind not in self._learning:
            self._learning[kind] = self._watches.create_task(self._learn(kind, wanted))
        await asyncio.shield(self._learning[kind])

    async def _learn(self, kind: str, wanted: NotFetched) -> None:
        try:
            await self.fetch(wanted)
        except (KubeError, OwnerMissing) as error:
            log.info("an owner could not be read ahead of its pods", kind=kind, error=str(error))
        finally:
            del self._learning[kind]

    async def _is_served(self, resource: Resource) -> bool:
        return await find_kind(self.client, resource.group, resource.kind, resource.version) is not None

    def _withdraw(self, kind: str, served: _Served) -> None:
        """Have a kind looked for again, unless that has been done, because its version is no longer served."""
        if self._served.get(kind) is not served:
            return
        log.info("a version is no longer served", kind=kind, version=served.resource and served.resource.version)
        del self._served[kind]
        self._types.pop(kind, None)
        for key in [key for key in self._others if key[0] == kind]:
            del self._others[key]
        if kind in self._caches:
            self._watching.pop(kind).cancel()
            self._withdrawn[kind] = self._caches.pop(kind)

    def _forget(self, kind: str, key: Key) -> None:
        self._others.pop((kind, *key), None)

    def _type(self, kind: str, resource: Resource) -> type[Owner]:
        if kind not in self._types:
            self._types[kind] = projection(kind, self._paths.get(kind, ()), resource.api_version)
        return self._types[kind]

    async def _look_for(self, kind: str, reference: OwnerReference) -> _Served:
        """Find out how a kind is served, and begin to watch it if it has a rule."""
        begun = self._caches.get(kind)
        if begun is not None:
            return self._listed(kind, begun)
        group, _, name = kind.rpartition("/")
        version = reference.api_version.rpartition("/")[2]
        group = "" if group == "v1" else group
        resource = await find_kind(self.client, group, name, version) or await find_kind(self.client, group, name)
        if resource is None:
            raise missing(reference)
        if kind not in self._paths or kind == POD_KIND:
            return _Served(resource)
        await self._running.wait()
        assert self._watches is not None
        try:
            async for _ in self.client.pages(resource, type=msgspec.Raw, limit=1):
                break
        except Forbidden as error:
            log.warning("a kind with a rule may not be read", kind=kind, error=str(error))
            return _Served(None, self._now + UNREADABLE_SECONDS)
        cache = WatchCache(
            self.client, resource, self._type(kind, resource), runtime=self.client.runtime, metrics=self.metrics
        )
        cache.subscribe(partial(self._changed, kind))
        cache.subscribe(self.changed)
        self._caches[kind] = cache
        self._watching[kind] = self._watches.create_task(cache.run(), name=f"owners of kind {kind}")
        with suppress(TimeoutError):
            async with asyncio.timeout(LISTED_SECONDS):
                await cache.wait_for_sync()
        return self._listed(kind, cache)

    def _listed(self, kind: str, cache: WatchCache[Owner]) -> _Served:
        """Return how a kind is served whose objects have been read; raises :class:`NotListed` before that."""
        if not cache.synced:
            raise NotListed(f"objects of kind {kind} ({cache.resource.api_version}) cannot be listed")
        log.info("watching owners", kind=kind, version=cache.resource.version, objects=len(cache))
        before = self._withdrawn.pop(kind, None)
        for key, old in before.items() if before is not None else ():
            if (new := cache.get(key)) is not None:
                self.changed(Change(key, old, new, cache.resource_version or ""))
        return _Served(cache.resource)

    @property
    def _now(self) -> float:
        return self.client.runtime.clock.monotonic()


def _kind(wanted: NotFetched) -> str:
    return group_kind(wanted.reference.api_version, wanted.reference.kind)


def _key(resource: Resource, namespace: str, name: str) -> Key:
    """Return what an owner of pods in a namespace is called; pods may be of an object that is in none."""
    return Key(namespace if resource.namespaced else "", name)

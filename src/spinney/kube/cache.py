"""A shared watch cache: the objects of one kind, kept up to date, with indexes and subscribers.

The cache lists the collection page by page, then watches from the version of the list. A watch that ends is resumed
from the last version seen (bookmarks move it on while nothing happens). When the server no longer knows that version
(410), the collection is listed again and compared with what is held, so that subscribers are told exactly what
changed meanwhile. So it is when the server, after an interruption, has not come to that version yet: its store was
restored from a backup, and such a watch would be silent until its versions have passed those that were seen.
Reconnecting backs off with jitter unless the watch had been healthy. What goes wrong is logged once, and that it is
over.

What subscribers may rely on: for each key the ``old`` of a change is the ``new`` of the change before; no version is
reported twice, unless the store was restored; a deletion is always reported, also when the object was created again
before the cache saw it (that is a change to None, then a change from None). Changes of one object arrive in order.
Several versions that went by while the watch was broken may be reported as one change.

Equal parts of the objects held are shared (:mod:`spinney.kube.sharing`), and whole objects with other caches of a
process where clients have their decoders in common (:mod:`spinney.kube.decoding`).

An object that does not decode as the cache's type is reported in the log and counted, and is treated as absent: one
odd object must not stop everything else.
"""

# ruff: noqa: A002 - "type" is the word for what an answer is decoded as

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

import msgspec
import structlog

from spinney.api.resource import Resource
from spinney.kube.client import PAGE_SIZE, Client
from spinney.kube.errors import ApiError, Expired, Forbidden, InternalError, KubeError, TooManyRequests, Unauthorized
from spinney.kube.indexes import Index, IndexFunction
from spinney.kube.keys import Key, ObjectIdentity, identify
from spinney.kube.metrics import KubeMetrics
from spinney.kube.parameters import Selecting
from spinney.kube.retrying import Backoff
from spinney.kube.troubles import Troubles
from spinney.kube.watching import Undecodable, WatchEvent
from spinney.runtime import Runtime
from spinney.runtime.tasks import in_background

T = TypeVar("T")

log = structlog.get_logger()


class Change(msgspec.Struct, Generic[T], frozen=True):
    """An object appeared (no ``old``), changed, or went (no ``new``)."""

    key: Key
    old: T | None
    new: T | None
    resource_version: str


Subscriber = Callable[[Change[T]], None]


class WatchTimes(msgspec.Struct, frozen=True):
    """How long a watch may last and be silent, and when it counts as healthy, in seconds."""

    shortest: float = 300.0
    longest: float = 600.0
    silence: float = 180.0  # an API server sends a bookmark about every minute
    healthy: float = 10.0


class WatchCache(Generic[T]):
    """The objects of one kind as the API server last reported them, each as a ``T``. Mutable; read it from its loop."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        type: type[T],
        *,
        runtime: Runtime,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        indexes: Mapping[str, IndexFunction[T]] = {},
        page_size: int = PAGE_SIZE,
        times: WatchTimes = WatchTimes(),  # noqa: B008 - a frozen value
        metrics: KubeMetrics | None = None,
        interrupted: Callable[[], None] = lambda: None,
    ) -> None:
        """Begin without objects; ``interrupted`` is called whenever the API server did not answer, or refused."""
        self.resource = resource
        self._client = client
        self._runtime = runtime
        self._type: Any = type
        self._namespace = namespace
        self._selecting = Selecting(label_selector=label_selector, field_selector=field_selector)
        self._page_size = page_size
        self._times = times
        self._decoder = client.decoder_for(type)
        self._rows: dict[Key, T] = {}
        self._known: dict[Key, ObjectIdentity] = {}
        self._indexes = {name: Index(function) for name, function in indexes.items()}
        self._subscribers: list[Subscriber[T]] = []
        self._synced = asyncio.Event()
        self._tried = asyncio.Event()
        self._answered = asyncio.Event()
        self._problem = ""
        self._failure: InternalError | None = None
        self._version: str | None = None
        self._listed_at = 0.0
        self._in_doubt = False
        self._troubles = Troubles()
        self._backoff = Backoff(runtime.random)
        self._interrupted = interrupted
        metrics = metrics or KubeMetrics()
        self._events = metrics.watch_events.labels(str(resource))
        self._relists = metrics.watch_relists.labels(str(resource))
        self._undecodable = metrics.undecodable.labels(str(resource))
        metrics.cached.labels(str(resource)).set_function(lambda: len(self._rows))

    # ------------------------------------------------------------------------------------------------ reading

    @property
    def synced(self) -> bool:
        """Tell whether the collection has been read once, whole."""
        return self._synced.is_set()

    async def wait_for_sync(self) -> None:
        """Wait until the collection has been read once, whole."""
        await self._synced.wait()

    async def wait_for_attempt(self) -> None:
        """Wait until the collection has been read once, or could not be."""
        await self._tried.wait()

    async def wait_for_answer(self) -> None:
        """Wait until the collection has been read once, whole, or the API server has failed to list it."""
        await self._answered.wait()

    @property
    def failure(self) -> InternalError | None:
        """Return how the API server fails to list the collection, such as one object of it, while it never was read."""
        return None if self.synced else self._failure

    @property
    def problem(self) -> str:
        """Return why the collection could not be read, while it never was."""
        return "" if self.synced else self._problem

    @property
    def resource_version(self) -> str | None:
        """Return the version up to which this cache has seen everything, or None before the first list."""
        return self._version

    def get(self, key: Key) -> T | None:
        """Return one object, or None."""
        return self._rows.get(key)

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: Key) -> bool:
        return key in self._rows

    def __iter__(self) -> Iterator[Key]:
        return iter(sorted(self._rows))

    def keys(self) -> list[Key]:
        """Return every key, in order."""
        return sorted(self._rows)

    def items(self) -> Iterator[tuple[Key, T]]:
        """Iterate over keys and objects, in key order."""
        return ((key, self._rows[key]) for key in sorted(self._rows))

    def values(self) -> Iterator[T]:
        """Iterate over the objects, in key order."""
        return (self._rows[key] for key in sorted(self._rows))

    def index(self, name: str, value: Hashable) -> list[T]:
        """Return the objects that have ``value`` in the index ``name``, in key order."""
        return [self._rows[key] for key in self._indexes[name].keys(value)]

    def index_keys(self, name: str, value: Hashable) -> list[Key]:
        """Return the keys of the objects that have ``value`` in the index ``name``, in key order."""
        return self._indexes[name].keys(value)

    def has_index(self, name: str) -> bool:
        """Tell whether there is an index of this name."""
        return name in self._indexes

    def add_index(self, name: str, values_of: IndexFunction[T]) -> None:
        """Add an index and fill it from what is held."""
        if name in self._indexes:
            raise ValueError(f"the cache of {self.resource} already has an index {name!r}")
        index = Index(values_of)
        for key, row in self._rows.items():
            index.update(key, None, row)
        self._indexes[name] = index

    def subscribe(self, subscriber: Subscriber[T]) -> Callable[[], None]:
        """Call ``subscriber`` with every change from now on, and at once with what is already held.

        It is called after the cache and its indexes hold the change, must not block, and must not raise: an error ends
        :meth:`run`. Returns a function that ends the subscription.
        """
        for key, row in self.items():
            subscriber(Change(key, None, row, self._known[key].resource_version))
        self._subscribers.append(subscriber)
        return lambda: self._subscribers.remove(subscriber)

    # ------------------------------------------------------------------------------------------------ running

    async def run(self) -> None:
        """Keep the cache up to date until cancelled."""
        while True:
            started = self._runtime.clock.monotonic()
            try:
                if self._in_doubt and self._version is not None:
                    await self._check_history(self._version)
                if self._version is None:
                    await self._list()
                self._in_doubt = False
                await self._watch()
            except Expired:
                log.info("watch too old, listing again", resource=str(self.resource), version=self._version)
                self._version = None
                if self._runtime.clock.monotonic() - self._listed_at >= self._times.healthy:
                    continue  # falling behind after an outage is no reason to stay behind any longer
            except ApiError as error:
                # Anything else a server says about a resumed watch (a kind that went and came back) is answered by
                # looking at the collection afresh, but not at once. What it says about who asks, or how often, is not
                # about the watch: a server that is busy, or not ready to know us, is asked for no list.
                if error.status < 500 and not isinstance(error, Unauthorized | Forbidden | TooManyRequests):
                    self._version = None
                if isinstance(error, InternalError):
                    self._failure = error
                    self._answered.set()
                self._fail(str(error))
                say = log.warning if self._troubles.is_new(error) else log.debug
                say("watch refused", resource=str(self.resource), status=error.status, error=str(error))
            except (KubeError, TimeoutError) as error:
                problem = str(error) or "silent for too long"
                self._fail(problem)
                say = log.info if self._troubles.is_new(error) else log.debug
                say("watch interrupted", resource=str(self.resource), error=problem)
            if self._runtime.clock.monotonic() - started >= self._times.healthy:
                self._backoff.reset()
            else:
                await self._runtime.clock.sleep(self._backoff.next())

    def _fail(self, problem: str) -> None:
        """Take in that the API server did not answer, or refused."""
        self._in_doubt = True
        self._problem = problem
        self._tried.set()
        self._interrupted()

    async def _check_history(self, seen: str) -> None:
        """Have the collection listed again if the server's history ends before the version that was seen."""
        now = await self._client.version(self.resource, self._namespace)
        if not _has_reached(now, seen):
            log.warning(
                "the API server is back at an older state, listing again",
                resource=str(self.resource),
                version=seen,
                now=now,
            )
            self._version = None
            # Versions will come again that were seen, of other contents.
            self._known = {key: known._replace(resource_version="") for key, known in self._known.items()}

    async def _list(self) -> None:
        """Bring the cache to the state of the collection, page by page, then drop what the collection lacks."""
        if self.synced:
            self._relists.inc()
        try:
            await self._read_collection(self._page_size)
        except Expired:
            # The version was forgotten between two pages. One request for everything cannot expire.
            await self._read_collection(0)
        self._listed_at = self._runtime.clock.monotonic()
        self._synced.set()
        self._tried.set()
        self._answered.set()
        log.debug("listed", resource=str(self.resource), objects=len(self._rows), version=self._version)

    async def _read_collection(self, page_size: int) -> None:
        seen: set[Key] = set()
        version = ""
        async for page in self._client.pages(
            self.resource, self._namespace, type=self._type, **self._selecting, limit=page_size
        ):
            for item in page.undecodable:
                self._report_undecodable(item)
            for obj in page.items:
                identity = identify(obj)
                seen.add(identity.key)
                self._decoder.share(obj)
                self._put(identity, obj)
            version = page.resource_version
        for key in sorted(self._rows.keys() - seen):
            self._drop(key, version)
        self._version = version

    async def _watch(self) -> None:
        length = self._runtime.random.uniform(self._times.shortest, self._times.longest)
        batches = self._client.watch_lines(
            self.resource,
            self._namespace,
            **self._selecting,
            resource_version=self._version,
            timeout_seconds=int(length),
        )
        try:
            while True:
                async with asyncio.timeout(self._times.silence):
                    batch = await anext(batches, None)
                if batch is None:
                    return
                for line in batch:
                    self._absorb(line)
                self._events.inc(len(batch))
                if self._troubles.end():
                    log.info("watch goes on", resource=str(self.resource))
        finally:
            await batches.aclose()

    def _absorb(self, line: bytes) -> None:
        event = self._decoder.decode(line)
        if isinstance(event, WatchEvent):
            identity = identify(event.object)
            version = identity.resource_version
            if self._already_seen(version):
                return
            if event.type == "DELETED":
                self._drop(identity.key, version)
            else:
                self._put(identity, event.object)
        else:
            version = event.resource_version
            if self._already_seen(version):
                return
            if isinstance(event, Undecodable):
                self._report_undecodable(event)
                self._drop(Key(event.namespace, event.name), version)
        self._version = version

    def _already_seen(self, version: str) -> bool:
        """Tell whether what the server sends is from before the version it was asked to go on from."""
        return _has_reached(self._version or "", version)

    # ------------------------------------------------------------------------------------------------ changing

    def _put(self, identity: ObjectIdentity, obj: Any) -> None:
        """Hold this version of the object, unless it is the one already held."""
        known = self._known.get(identity.key)
        if known is not None:
            if known.uid != identity.uid:
                self._drop(identity.key, identity.resource_version)
            elif known.resource_version == identity.resource_version:
                return
        old = self._rows.get(identity.key)
        self._rows[identity.key] = obj
        self._known[identity.key] = identity
        self._tell(Change(identity.key, old, obj, identity.resource_version))

    def _drop(self, key: Key, version: str) -> None:
        old = self._rows.pop(key, None)
        if old is not None:
            del self._known[key]
            self._tell(Change(key, old, None, version))

    def _tell(self, change: Change[T]) -> None:
        for index in self._indexes.values():
            index.update(change.key, change.old, change.new)
        for subscriber in tuple(self._subscribers):
            subscriber(change)

    def _report_undecodable(self, item: Undecodable) -> None:
        self._undecodable.inc()
        log.error(
            "object ignored: it does not have the expected shape",
            resource=str(self.resource),
            object=str(Key(item.namespace, item.name)),
            problem=item.problem,
        )


def _has_reached(version: str, other: str) -> bool:
    """Tell whether ``other`` is no later than ``version``: they grow as decimal numbers; what is none is news."""
    return version.isdecimal() and other.isdecimal() and int(other) <= int(version)


@asynccontextmanager
async def kept_up(*caches: WatchCache[Any]) -> AsyncIterator[None]:
    """Run caches for the time of the block, which begins when each has been read once."""
    async with in_background(*(cache.run() for cache in caches)):
        for cache in caches:
            await cache.wait_for_sync()
        yield

"""One viewer's eyes: everything they may read, followed with their own credentials and published as it changes.

The rows are made again at most a few times a second, and never more of the time than a set part: a cluster where
everything happens at once is shown a little later, not at the cost of a whole core. What has changed waits for that
moment, too, so an object that changes four times meanwhile is looked at once. What the viewer may read is asked again
every minute; when it has changed, the view starts anew and shows only that.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Final

import structlog
from msgspec.structs import replace

from spinney.api.core import EVENT, NODE, POD, Node
from spinney.api.events import Event
from spinney.api.resource import Resource
from spinney.api.struct import encode
from spinney.cluster.pods import PodKey
from spinney.dashboard.board import Board
from spinney.dashboard.feed import Feed
from spinney.dashboard.history import EVICTIONS, SAMPLE_SECONDS
from spinney.dashboard.rights import ReadableScope, readable
from spinney.dashboard.rows import Delta, State
from spinney.gangs.membership import membership
from spinney.gangs.sources import bare
from spinney.kube.cache import Change, WatchCache
from spinney.kube.client import Client
from spinney.kube.errors import KubeError, Unauthorized
from spinney.kube.keys import Key
from spinney.kube.metrics import KubeMetrics
from spinney.reporting.unreadable import UnreadableObjects
from spinney.runtime.tasks import end
from spinney.sim.snapshots.snapshot import KINDS, ClusterSnapshot, Unseen, failed

log = structlog.get_logger()

RIGHTS_SECONDS: Final = 60.0
_SOON: Final = 5.0
"""How soon the API server is asked again that has not answered, in seconds."""
_HEARTBEAT: Final = 15.0
"""How often the API server is asked for a word, in seconds: watches of one that hangs are as quiet as those of one at
rest."""
_PATIENCE: Final = 10.0
"""Seconds that it may take to answer."""
_AT_ONCE: Final = 100
"""So many changes are taken in before others have their turn: it takes a few milliseconds."""


_SILENT: Final = "the API server does not answer, so this may be out of date"


@dataclass(frozen=True, slots=True)
class RefreshPace:
    """How often rows are made again, in seconds."""

    gather: float = 0.2
    """From a change to the rows, so that what comes together is shown together."""
    queues: float = 2.0
    """Between two looks at the queues, which take a session to divide."""
    share: float = 0.1
    """The part of the time that making rows may take."""
    unseen_share: float = 0.02
    """The same while nobody looks, and rows are only made for what is told of the past."""
    rights: float = RIGHTS_SECONDS


class View:
    """What one viewer may see. Mutable; :meth:`run` follows the cluster until it is cancelled."""

    def __init__(
        self,
        client: Client,
        *,
        source: str,
        namespaces: Sequence[str] = (),
        pace: RefreshPace = RefreshPace(),  # noqa: B008 - frozen
    ) -> None:
        self.client = client
        self.runtime = client.runtime
        self.source = source
        self._namespaces = tuple(namespaces)
        self._pace = pace
        self._metrics = KubeMetrics()
        self._guard = UnreadableObjects(self._metrics)
        self.feed = Feed("")
        self._begin(ReadableScope(frozenset(), {}, frozenset()))
        self._ready = asyncio.Event()
        self._viewers = 0
        self.problem: KubeError | None = None
        """Why nothing can be shown, if so."""

    def _begin(self, scope: ReadableScope) -> None:
        self.scope = scope
        self._board = Board(self.runtime)
        self._unread: dict[tuple[Resource, Key], Change[Any]] = {}
        """What has changed and is not on the board yet, one change for each object."""
        before, self.feed = self.feed, Feed(self.runtime.uid()[:8])
        before.end()
        self._caches: dict[tuple[Resource, str | None], WatchCache[Any]] = {}
        self._changed, self._interrupted = asyncio.Event(), asyncio.Event()
        self._encoded: tuple[str, bytes] | None = None
        self._trouble = ""

    @property
    def board(self) -> Board:
        """Return the board, on which everything is that is known."""
        self._take_in(len(self._unread))
        return self._board

    async def wait_until_ready(self) -> None:
        """Wait until everything has been read once; raises what keeps it from being read."""
        await self._ready.wait()
        if self.problem is not None:
            raise self.problem

    @contextmanager
    def seen(self) -> Iterator[None]:
        """Have somebody look for the time of the block: the first one finds rows of this moment."""
        if not self._viewers:
            self._publish(queues=False)
        self._viewers += 1
        try:
            yield
        finally:
            self._viewers -= 1

    async def run(self) -> None:
        """Follow the cluster; ends when the API server no longer knows the viewer."""
        while True:
            try:
                scope = await readable(self.client, self._namespaces)
                self.problem = None
                self._begin(scope)
                await self._follow(scope)
            except Unauthorized as error:
                self.problem = error
                self.feed.end()
                self._ready.set()
                return
            except KubeError as error:
                log.info("cluster not read", source=self.source, error=str(error))
                self.problem = error
                self._ready.set()
                await self.runtime.clock.sleep(min(_SOON, self._pace.rights))
            self._ready.clear()

    async def _follow(self, scope: ReadableScope) -> None:
        """Follow what may be read until that changes."""
        wanted: list[tuple[Resource, str | None]] = [(kind, None) for kind in scope.everywhere]
        wanted += [(kind, name) for name, kinds in scope.within.items() for kind in kinds]
        running: list[asyncio.Task[None]] = []

        def follow(cache: WatchCache[Any], kind: Resource, take_in: Callable[[Change[Any]], None]) -> None:
            cache.subscribe(self._guard.guarded(kind, take_in))
            running.append(asyncio.create_task(cache.run(), name=f"dashboard's cache of {kind}"))

        try:
            for kind, namespace in sorted(wanted, key=lambda each: (str(each[0]), each[1] or "")):
                if kind is not EVENT:
                    cache = self._caches[kind, namespace] = self._cache(kind, namespace)
                    follow(cache, kind, partial(self._note, kind))
            for cache in self._caches.values():
                await cache.wait_for_answer()
                if cache.failure is not None and cache.resource in (NODE, POD):  # there is nothing to show without them
                    raise cache.failure
            for namespace in [namespace for kind, namespace in wanted if kind is EVENT]:
                for reason in EVICTIONS:  # of pods, which are known by now
                    follow(self._cache(EVENT, namespace, f"reason={reason}"), EVENT, self._note_eviction)
            self._publish(queues=True)
            self._ready.set()
            running.append(asyncio.create_task(self._publish_for_ever(), name="dashboard's rows"))
            running.append(asyncio.create_task(self._sample_for_ever(), name="dashboard's samples"))
            await self._until_rights_change(scope, running)
        finally:
            await end(*running)

    async def _until_rights_change(self, scope: ReadableScope, running: Sequence[asyncio.Task[None]]) -> None:
        left, quiet, unseen = self._pace.rights, 0.0, self._unseen
        while True:
            soon = min(_SOON, self._pace.rights)
            done, _ = await asyncio.wait(running, timeout=soon, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            left, quiet = left - soon, quiet + soon
            if quiet >= _HEARTBEAT and not self._trouble:
                quiet = 0.0
                if await self._hangs():
                    self._say(f"{_SILENT}: it has said nothing for {_PATIENCE:.0f} seconds")
            if left > 0 and not self._interrupted.is_set() and not self._trouble:
                continue
            left = self._pace.rights
            self._interrupted.clear()
            try:
                found = await readable(self.client, self._namespaces)
            except Unauthorized:
                raise
            except KubeError as error:
                log.info("rights not asked", source=self.source, error=str(error))
                self._say(f"{_SILENT}: {' '.join(str(error).split())}")
                continue
            self._say("")
            if found != scope or self._unseen != unseen:
                return

    async def _hangs(self) -> bool:
        """Tell whether the API server leaves a question open that takes it no time; to be refused is an answer."""
        try:
            async with asyncio.timeout(_PATIENCE):
                await self.client.raw("GET", "/version")
        except TimeoutError:
            return True
        except KubeError:
            return False
        return False

    @property
    def _unseen(self) -> tuple[Unseen, ...]:
        """Return what is not shown, and why: an object that cannot be listed need not be the first of its kind."""
        failing = {kind: cache.failure for (kind, _), cache in self._caches.items() if cache.failure is not None}
        return (*self.scope.unseen, *(failed(kind, failure) for kind, failure in failing.items()))

    def _say(self, trouble: str) -> None:
        """Tell viewers whether what they see may be out of date, where that has changed."""
        if trouble != self._trouble:
            self._trouble = trouble
            self.feed.publish(encode(Delta(at=self.runtime.clock.now(), trouble=trouble)))

    def _cache(self, kind: Resource, namespace: str | None, field_selector: str | None = None) -> WatchCache[Any]:
        return WatchCache(
            self.client,
            kind,
            KINDS.get(kind, Event),
            runtime=self.runtime,
            namespace=namespace,
            field_selector=field_selector,
            metrics=self._metrics,
            interrupted=self._interrupted.set,
        )

    # -- changes -----------------------------------------------------------------------------------------------------

    def _note(self, kind: Resource, change: Change[Any]) -> None:
        """Keep a change until the rows are made; one that ends an object comes after all that came before it."""
        if change.new is None:
            self.board.take_in(change)
        else:
            before = self._unread.get((kind, change.key))
            self._unread[kind, change.key] = change if before is None else replace(change, old=before.old)
        if not isinstance(change.new, Node) or not _is_heartbeat(change):
            self._changed.set()

    def _take_in(self, count: int) -> None:
        """Put the oldest of what has changed on the board."""
        for kind, key in list(islice(self._unread, count)):
            self._guard.guarded(kind, self._board.take_in)(self._unread.pop((kind, key)))

    def _note_eviction(self, change: Change[Event]) -> None:
        event = change.new
        if event is None or event.involved_object.kind != "Pod":
            return
        pod = PodKey(event.involved_object.namespace, event.involved_object.name)
        record = self.board.inventory.cluster.pod(pod)
        gang = self.board.history.gang_of(pod) if record is None else membership(record)[0]
        if gang is not None and gang.source != bare.SOURCE:
            self.board.history.evicted(gang, event)

    async def _publish_for_ever(self) -> None:
        clock = self.runtime.clock
        queues_at = clock.monotonic()
        while True:
            await self._changed.wait()
            await clock.sleep(self._pace.gather)
            self._changed.clear()
            caught_up = await self._catch_up()
            began = clock.monotonic()
            queues = began - queues_at >= self._pace.queues
            self._publish(queues=queues)
            ended = clock.monotonic()
            if queues:
                queues_at = ended
            share = self._pace.share if self._viewers else self._pace.unseen_share
            await clock.sleep((caught_up + ended - began) * (1 / share - 1))
            if not queues:
                # Queues had to wait: look again when it is their turn, though nothing else may have happened.
                asyncio.get_running_loop().call_later(self._pace.queues, self._changed.set)

    async def _catch_up(self) -> float:
        """Put what has changed on the board, little by little, and return the seconds that it took."""
        clock = self.runtime.clock
        seconds = 0.0
        for _ in range(0, len(self._unread), _AT_ONCE):
            began = clock.monotonic()
            self._take_in(_AT_ONCE)
            seconds += clock.monotonic() - began
            await asyncio.sleep(0)
        return seconds

    async def _sample_for_ever(self) -> None:
        while True:
            self._board.history.sample_queues(self._board.queue_rows)
            await self.runtime.clock.sleep(SAMPLE_SECONDS)

    def _publish(self, *, queues: bool) -> None:
        delta = self.board.delta(queues=queues)
        if delta:
            self.feed.publish(encode(delta))

    # -- reading -----------------------------------------------------------------------------------------------------

    def state(self) -> bytes:
        """Return everything, as JSON; encoded once for all who ask about the same revision."""
        if self._encoded is None or self._encoded[0] != self.feed.id:
            board = self.board
            state = State(
                revision=self.feed.id,
                at=self.runtime.clock.now(),
                source=self.source,
                unit=board.unit,
                levels=board.levels,
                nodes=board.node_rows,
                gangs=board.gang_rows,
                queues=board.queue_rows,
                unseen=self._unseen,
                namespaces=self.scope.namespaces,
                trouble=self._trouble,
            )
            self._encoded = (self.feed.id, encode(state))
        return self._encoded[1]

    def holds(self, kind: Resource, namespace: str, name: str) -> bool:
        """Tell whether there is such an object that may be seen."""
        caches = (self._caches.get((kind, each)) for each in (None, namespace))
        return any(cache is not None and Key(namespace, name) in cache for cache in caches)

    def snapshot(self) -> ClusterSnapshot:
        """Return the cluster as it is known now, for questions that take a simulation."""
        objects: dict[Resource, tuple[Any, ...]] = {}
        for (kind, _), cache in self._caches.items():
            if not cache.synced:
                continue
            objects[kind] = (*objects.get(kind, ()), *cache.values())
        ordered = {kind: objects[kind] for kind in KINDS if kind in objects}
        now = self.runtime.clock.now()
        return ClusterSnapshot(objects=ordered, unseen=self._unseen, taken=now, source=self.source)


def _is_heartbeat(change: Change[Node]) -> bool:
    """Tell whether nothing but the time of a node's conditions changed."""
    return change.old is not None and change.new is not None and _lasting(change.old) == _lasting(change.new)


def _lasting(node: Node) -> tuple[object, ...]:
    conditions = [(each.type, each.status) for each in node.status.conditions]
    return node.spec, node.metadata.labels, node.status.allocatable, conditions

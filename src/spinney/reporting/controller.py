"""The one controller that writes how gangs stand. What differs between kinds of objects is a :class:`StatusKind`."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import structlog

from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.cluster.statuses import PodStatus
from spinney.gangs.tree import GangKey
from spinney.kube.cache import WatchCache
from spinney.kube.client import Client
from spinney.kube.controller import Controller, Requeue
from spinney.kube.errors import Conflict, KubeError, NotFound
from spinney.kube.event_series import EventType
from spinney.kube.events import EventRecorder, reference
from spinney.kube.keys import Key, key_of
from spinney.kube.manager import Manager
from spinney.reporting.verdicts import GangStanding, Standings
from spinney.runtime import Runtime
from spinney.runtime.tasks import together

T = TypeVar("T")

log = structlog.get_logger()

GIVING_WAY_SECONDS = 10.0
"""How long after binds have begun a status that gives way to them is written all the same."""
_AT_ONCE = 4
"""How many objects are written at the same time when a process stops."""


class ObjectEvent(NamedTuple):
    """An event on an object."""

    type: EventType
    reason: str
    message: str


class StatusKind(ABC, Generic[T]):
    """What one kind of object says of a gang."""

    name: str
    """Of its controller."""
    resource: Resource
    sources: frozenset[str]
    """Where the gangs come from that have such objects."""
    having_nodes: frozenset[PodStatus] = frozenset({PodStatus.BINDING, PodStatus.BOUND, PodStatus.RUNNING})
    """The statuses of pods that count as placed."""
    follows_objects: ClassVar[bool] = False
    """Whether a change of the object itself is a reason to look."""
    follows_pods: ClassVar[bool] = False
    """Whether every change of a pod is."""
    gives_way: ClassVar[bool] = False
    """Whether people read it but no program waits for it: then it is written when no binds are under way."""

    @abstractmethod
    def gang_of(self, found: T) -> GangKey:
        """Return the gang that an object is."""

    @abstractmethod
    def patch(self, found: T, standing: GangStanding, runtime: Runtime) -> JSON | None:
        """Return the patch that has an object say how its gang stands; nothing if it says so, or need not."""

    def keys(self, gang: GangKey, standings: Standings) -> list[Key]:
        """Return the objects of a gang."""
        return [Key(gang.namespace, gang.name)]

    def gathering_seconds(self, found: T) -> float:
        """Return how long changes of pods are gathered before the object of their gang is looked at."""
        return 0.0

    def event_with(self, found: T, standing: GangStanding, patch: JSON) -> ObjectEvent | None:
        """Return what an event tells beside a patch."""
        return None

    def gone(self, key: Key) -> None:
        """Forget an object."""

    async def write(self, client: Client, found: T, patch: JSON) -> None:
        """Write a patch."""
        key = key_of(found)
        await client.patch(self.resource, key.name, patch, key.namespace, subresource="status")


class StatusController(Generic[T]):
    """Keeps the status of objects of one kind true. Has nothing to do until they are followed."""

    def __init__(self, kind: StatusKind[T], standings: Standings, manager: Manager, events: EventRecorder) -> None:
        self.kind = kind
        self._standings = standings
        self._client = manager.client
        self._events = events
        self._objects: WatchCache[T] | None = None
        self.controller = Controller(kind.name, self._reconcile, runtime=manager.runtime, metrics=manager.metrics)

    def follow(self, objects: WatchCache[T]) -> None:
        """Begin to write, now or when the kind is installed later."""
        self._objects = objects
        if self.kind.follows_objects:
            self.controller.watch(objects)

    @property
    def follows_pods(self) -> bool:
        """Tell whether every change of a pod is a reason to look: not while the kind is not installed."""
        return self.kind.follows_pods and self._objects is not None

    def look_at(self, gang: GangKey, *, gather: bool = False) -> None:
        """Look at the objects of a gang now, or when some more of its pods may have changed."""
        if self._objects is not None and gang.source in self.kind.sources:
            for key in self.kind.keys(gang, self._standings):
                found = self._objects.get(key)
                if found is None:
                    self.kind.gone(key)
                else:
                    self.controller.enqueue_after(key, self.kind.gathering_seconds(found) if gather else 0.0)

    async def finish(self, seconds: float) -> None:
        """Write what can be written in so many seconds before a process stops; what is left the next start finds."""
        keys = iter(self._objects or ())
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await together(*(self._write_each(keys) for _ in range(_AT_ONCE)))

    async def _write_each(self, keys: Iterable[Key]) -> None:
        for key in keys:
            try:
                await self._write(key)
            except KubeError as error:
                log.info("status not written before the stop", key=str(key), error=str(error))

    async def _reconcile(self, key: Key) -> Requeue | None:
        if self.kind.gives_way:
            await self._events.when_calm(GIVING_WAY_SECONDS)
        return await self._write(key)

    async def _write(self, key: Key) -> Requeue | None:
        found = self._objects.get(key) if self._objects is not None else None
        if found is None:
            self.kind.gone(key)
            return None
        standing = self._standings.standing(self.kind.gang_of(found), self.kind.having_nodes)
        patch = self.kind.patch(found, standing, self._client.runtime)
        if not patch:
            await asyncio.sleep(0)  # thousands of looks that find all well would let no bind begin
            return None
        event = self.kind.event_with(found, standing, patch)
        try:
            await self.kind.write(self._client, found, patch)
        except NotFound:
            return None
        except Conflict:
            return Requeue()
        if event is not None:
            self._events.event(reference(self.kind.resource, found), *event)
        return None


AnyStatusController = StatusController[Any]

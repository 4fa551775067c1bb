"""How controllers write and wake: several requests at a time, bursts gathered, own writes never forgotten.

:class:`Latest` remembers the answer to the last write of each object. A watch cache lags behind a write by the time the
event takes; a controller that decided on that older version would undo, for a moment, what it had just done.
"""
# ruff: noqa: A002 - "type" is the word for what an answer is decoded as

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import msgspec

from spinney.api.meta import Metadata
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.kube.cache import Change
from spinney.kube.client import Client, PatchKind
from spinney.kube.controller import Controller, Mapper, Reconcile
from spinney.kube.errors import AlreadyExists, Conflict, NotFound
from spinney.kube.keys import Key
from spinney.kube.manager import Manager
from spinney.kube.queue import LONGEST_DELAY_SECONDS
from spinney.runtime import Clock
from spinney.runtime.faults import raised_later

CONCURRENT_WRITES = 16

COMING_UP_SECONDS = 1.0
COMING_UP_SECONDS_PER_REPLICA = 0.03
COMING_UP_SECONDS_AT_MOST = 30.0
"""How far a status may be behind while pods are being made, released and placed."""

Unread: TypeAlias = msgspec.Raw
"""What an answer that nobody reads is decoded as."""


class GatheringTime(NamedTuple):
    """How long changes are gathered before an object is looked at or written: a moment, and more if it is large."""

    seconds: float
    seconds_per_part: float

    def of(self, parts: int) -> float:
        """Return the seconds for an object of so many parts, be they pods or replicas."""
        return self.seconds + self.seconds_per_part * parts


T = TypeVar("T")
I = TypeVar("I")  # noqa: E741 - an item


class Stored(Protocol):
    """An object as the API server stores it."""

    @property
    def metadata(self) -> Metadata: ...


S = TypeVar("S", bound=Stored)


class Latest(Generic[S]):
    """The newest version of each object that this process knows, from its own writes or from the cache. Mutable."""

    def __init__(self) -> None:
        self._written: dict[Key, S] = {}
        self._cached: dict[Key, int] = {}
        """The version of each that the cache had when it was last looked at."""

    def wrote(self, key: Key, stored: S) -> S:
        """Remember the answer to a write and return it."""
        self._written[key] = stored
        return stored

    def of(self, key: Key, cached: S) -> S:
        """Return the cached object, or what was written since; forgets what the cache has caught up with.

        So it does with what is lost, when the API server is back at an older state and the cache with it.
        """
        before, now = self._cached.get(key, 0), _version(cached)
        self._cached[key] = now
        written = self._written.get(key)
        if written is None:
            return cached
        if written.metadata.uid == cached.metadata.uid and before <= now < _version(written):
            return written
        del self._written[key]
        return cached

    def is_written(self, change: Change[S]) -> bool:
        """Tell whether a change is this process's own latest write, seen again: the cache has caught up with it."""
        written = self._written.get(change.key)
        if written is None or change.new is None or _version(written) != _version(change.new):
            return False
        self._cached[change.key] = _version(written)
        return True

    def forget(self, key: Key) -> None:
        """Drop what is remembered of an object that is gone."""
        self._written.pop(key, None)
        self._cached.pop(key, None)


class HeldBack:
    """Writes about what is coming up, which may wait a little because the next one is likely to say more. Mutable.

    The time runs from the first that was held back, so changes without end delay a write and never prevent it. What
    is part of something large comes up more slowly, and may wait longer.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: dict[Key, float] = {}

    def seconds_left(self, key: Key, replicas: int) -> float:
        """Return how much longer the write of an object may wait; ``replicas`` are those of its set."""
        now = self._clock.monotonic()
        allowed = min(COMING_UP_SECONDS + COMING_UP_SECONDS_PER_REPLICA * replicas, COMING_UP_SECONDS_AT_MOST)
        return self._since.setdefault(key, now) + allowed - now

    def forget(self, key: Key) -> None:
        """Begin anew: what was held back has been written, or is not needed any more."""
        self._since.pop(key, None)


async def write_each(
    items: Iterable[I], write: Callable[[I], Awaitable[object]], *, at_once: int = CONCURRENT_WRITES
) -> None:
    """Write every item, several at a time; after an error no further one is begun, and the first error is raised."""
    every = list(items)
    if len(every) < 2:
        for item in every:
            await write(item)
        return
    remaining = iter(every)
    failures: list[BaseException] = []

    async def work() -> None:
        for item in remaining:
            if failures:
                return
            try:
                await write(item)
            except raised_later() as error:  # raised below, once the writes under way have ended
                failures.append(error)

    await asyncio.gather(*(work() for _ in range(min(at_once, len(every)))))
    if failures:
        raise failures[0]


async def create_once(client: Client, resource: Resource, wanted: Any) -> None:
    """Create an object; one that is there already is left as it is."""
    try:
        await client.create(resource, wanted, type=Unread)
    except AlreadyExists:
        return


async def unless_gone(request: Awaitable[object]) -> bool:
    """Await a write for one incarnation of an object; ``False`` if that is gone, or another has its name by now.

    The event of it is on the way.
    """
    try:
        await request
    except (NotFound, Conflict):
        return False
    return True


async def annotate_exactly(
    client: Client, resource: Resource, key: Key, uid: str, annotations: Mapping[str, str | None]
) -> bool:
    """Annotate this very object, ``None`` takes an annotation off; ``False`` if it is gone."""
    patch = {"metadata": {"uid": uid, "annotations": dict(annotations)}}
    return await unless_gone(client.patch(resource, key.name, patch, key.namespace, type=Unread))


async def delete_exactly(client: Client, resource: Resource, found: Stored) -> None:
    """Delete this very object; one that is gone is fine, another of its name is not touched."""
    metadata = found.metadata
    if metadata.deleting:
        return
    await unless_gone(client.delete(resource, metadata.name, metadata.namespace, uid=metadata.uid))


async def patch_exactly(client: Client, resource: Resource, found: Stored, patch: list[JSON], *, type: type[T]) -> T:
    """Change this very object by a JSON patch; another of its name is not touched."""
    metadata = found.metadata
    same = {"op": "test", "path": "/metadata/uid", "value": metadata.uid}
    return await client.patch(
        resource, metadata.name, [same, *patch], metadata.namespace, kind=PatchKind.JSON, type=type
    )


async def patch_each(client: Client, resource: Resource, patches: Iterable[tuple[Stored, list[JSON]]]) -> None:
    """Change each of these very objects for which there is something in its JSON patch."""
    wanted = [each for each in patches if each[1]]
    await write_each(wanted, lambda each: patch_exactly(client, resource, *each, type=Unread))


def a_controller(
    manager: Manager,
    name: str,
    reconcile: Reconcile,
    *,
    workers: int = 1,
    longest_delay: float = LONGEST_DELAY_SECONDS,
) -> Controller:
    """Return a new controller that the manager runs; what keeps failing is tried again after ``longest_delay``."""
    controller = Controller(
        name,
        reconcile,
        runtime=manager.runtime,
        workers=workers,
        longest_delay=longest_delay,
        metrics=manager.metrics,
    )
    manager.add(controller)
    return controller


def gathering(
    controller: Controller, keys_of: Mapper, seconds: Callable[[Key], float]
) -> Callable[[Change[Any]], None]:
    """Return a subscriber that asks for the keys of a changed object a moment later: a burst becomes one reconcile."""

    def gather(change: Change[Any]) -> None:
        for key in keys_of(change):
            controller.enqueue_after(key, seconds(key))

    return gather


def _version(stored: Stored) -> int:
    version = stored.metadata.resource_version or ""
    return int(version) if version.isdecimal() else 0


async def add_finalizer(client: Client, resource: Resource, obj: Any, finalizer: str) -> bool:
    """Put ``finalizer`` on the object; returns whether anything had to be written."""
    present: Sequence[str] = obj.metadata.finalizers
    if finalizer in present:
        return False
    await _write(client, resource, obj, [*present, finalizer])
    return True


async def remove_finalizer(client: Client, resource: Resource, obj: Any, finalizer: str) -> bool:
    """Take ``finalizer`` off the object; returns whether anything had to be written. One already gone is fine."""
    present: Sequence[str] = obj.metadata.finalizers
    if finalizer not in present:
        return False
    try:
        await _write(client, resource, obj, [item for item in present if item != finalizer])
    except NotFound:
        return False
    return True


async def _write(client: Client, resource: Resource, obj: Any, finalizers: list[str]) -> None:
    """Write the whole list; if another client wrote in between, ``Conflict`` keeps its finalizers from being lost."""
    metadata = obj.metadata
    patch = {
        "metadata": {
            "finalizers": finalizers,
            "uid": metadata.uid,
            "resourceVersion": metadata.resource_version,
        }
    }
    await client.patch(resource, metadata.name, patch, metadata.namespace)

"""Recording Kubernetes events (core ``v1``), so that ``kubectl describe`` shows what happened.

Recording never blocks and never fails the caller. The same event again raises the ``count`` of the one that is there;
events that differ only in their message are combined once there are many; and each object has a budget that refills
slowly, so that an object in trouble cannot flood the API server (:mod:`~spinney.kube.event_series`).

Events are sent in the background, a few at a time: those of one object in the order in which they were recorded, those
of different objects in any. What waits to be sent is bounded, by far more than the largest gang. An event costs the API
server more than the bind it tells of, so while a component has urgent writes to do (:meth:`EventRecorder.giving_way`)
events go out two at a time, unless so many wait that some could be lost. The price is that after a burst of binds the
last event comes later than it otherwise would.
"""

import asyncio
import contextvars
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import structlog
from msgspec.structs import replace

from spinney.api.core import EVENT
from spinney.api.events import ObjectReference
from spinney.api.resource import Resource
from spinney.api.struct import encode, to_json
from spinney.api.time import timestamp
from spinney.kube.client import Client
from spinney.kube.errors import Forbidden, KubeError, NotFound
from spinney.kube.event_series import CountedEvent, EventContent, EventCorrelator, EventType
from spinney.kube.keys import identify
from spinney.kube.metrics import KubeMetrics

log = structlog.get_logger()

_QUEUED = 50_000
_IN_FLIGHT = 8
_IN_FLIGHT_BEHIND = 2  # behind urgent writes
_MESSAGE_LENGTH = 1024


def reference(resource: Resource, obj: Any) -> ObjectReference:
    """Return a reference to a decoded object."""
    identity = identify(obj)
    return ObjectReference(
        api_version=resource.api_version,
        kind=resource.kind,
        name=identity.key.name,
        namespace=identity.key.namespace,
        uid=identity.uid,
        resource_version=identity.resource_version,
    )


_Queue = dict[EventContent, CountedEvent]
"""What is to be sent about one object, in order."""


class Urgency:
    """How many urgent writes are under way in a process; its event recorders share it. Mutable."""

    def __init__(self) -> None:
        self.writes = 0
        self.since = 0.0
        """When the first of those under way began, on the monotonic clock."""
        self.over: list[Callable[[], None]] = []
        """Called when the last is done."""
        self.calm = asyncio.Event()
        self.calm.set()

    def begin(self, now: float) -> None:
        """Count one more."""
        if not self.writes:
            self.since = now
            self.calm.clear()
        self.writes += 1

    def end(self) -> None:
        """Count one less."""
        self.writes -= 1
        if not self.writes:
            self.calm.set()
            for call in self.over:
                call()


class EventRecorder:
    """Records events on behalf of one component. Mutable; used from one event loop."""

    def __init__(
        self,
        client: Client,
        component: str,
        *,
        metrics: KubeMetrics | None = None,
        urgency: Urgency | None = None,
    ) -> None:
        self._client = client
        self._runtime = client.runtime
        self._component = component
        counted = (metrics or KubeMetrics()).events
        self._counts = {outcome: counted.labels(outcome) for outcome in ("sent", "merged", "dropped", "failed")}
        self._correlator = EventCorrelator(client.runtime)
        self._outbox: OrderedDict[ObjectReference, _Queue] = OrderedDict()
        self._being_sent: dict[ObjectReference, _Queue] = {}
        self._waiting = 0
        self._senders: set[asyncio.Task[None]] = set()
        self._urgency = urgency or Urgency()
        self._urgency.over.append(self._send_soon)

    @contextmanager
    def giving_way(self) -> Iterator[None]:
        """Leave the API server to the writes made inside the block: events wait, as long as there is room for them.

        Those of every component of the process do: they all use the same API server.
        """
        self._urgency.begin(self._runtime.clock.monotonic())
        try:
            yield
        finally:
            self._urgency.end()

    async def when_calm(self, seconds: float) -> None:
        """Wait until there are no urgent writes, or until there have been some for so many seconds."""
        left = self._urgency.since + seconds - self._runtime.clock.monotonic()
        with suppress(TimeoutError):
            async with asyncio.timeout(left):
                await self._urgency.calm.wait()

    def event(self, about: ObjectReference, type: EventType, reason: str, message: str) -> None:  # noqa: A002
        """Record that ``reason`` happened to ``about``; returns at once, and the event is sent in the background."""
        found = self._correlator.correlate(
            EventContent(_without_version(about), type, reason, message[:_MESSAGE_LENGTH])
        )
        if found is None:
            self._counts["dropped"].inc()
        else:
            self._enqueue(*found)

    async def flush(self) -> None:
        """Wait until everything recorded so far has been sent."""
        while self._senders:
            await asyncio.wait(self._senders)

    async def close(self, seconds: float) -> None:
        """Send what can be sent in so many seconds; the rest is dropped, so that a process that stops does stop."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.flush()
        self._counts["dropped"].inc(self._waiting)
        self._outbox.clear()
        for sender in self._senders:
            sender.cancel()
        await self.flush()
        self._waiting = 0

    def _enqueue(self, said: EventContent, series: CountedEvent) -> None:
        queue = self._being_sent.get(said.about)
        if queue is None:
            queue = self._outbox.setdefault(said.about, {})
        if said in queue:
            self._counts["merged"].inc()
        elif self._waiting >= _QUEUED:
            self._counts["dropped"].inc()
        else:
            queue[said] = series
            self._waiting += 1
            self._send_soon()

    @property
    def _most_senders(self) -> int:
        return _IN_FLIGHT_BEHIND if self._urgency.writes and self._waiting < _QUEUED // 2 else _IN_FLIGHT

    def _send_soon(self) -> None:
        for _ in range(len(self._senders), min(self._most_senders, len(self._outbox))):
            # A context of its own: an event is not one of the writes of the reconcile that recorded it.
            sender = asyncio.get_running_loop().create_task(
                self._send(), name=f"events of {self._component}", context=contextvars.Context()
            )
            self._senders.add(sender)

    async def _send(self) -> None:
        """Send what waits, one object after the other, until nothing does or there are more senders than should be."""
        try:
            while self._outbox and len(self._senders) <= self._most_senders:
                about, queue = self._outbox.popitem(last=False)
                self._being_sent[about] = queue
                try:
                    await self._send_all(queue)
                finally:
                    del self._being_sent[about]
        finally:
            self._senders.remove(asyncio.current_task())  # type: ignore[arg-type]

    async def _send_all(self, queue: _Queue) -> None:
        while queue:
            said = next(iter(queue))
            series = queue.pop(said)
            self._waiting -= 1
            await self._send_one(said, series)

    async def _send_one(self, said: EventContent, series: CountedEvent) -> None:
        try:
            await self._store(said, series)
            self._counts["sent"].inc()
        except KubeError as error:
            self._counts["failed"].inc()
            # A namespace that is going away takes no more events.
            level = log.debug if isinstance(error, Forbidden | NotFound) else log.warning
            level("event not recorded", about=str(said.about.name), reason=said.reason, error=str(error))

    async def _store(self, said: EventContent, series: CountedEvent) -> None:
        namespace = said.about.namespace or "default"
        if series.stored:
            patch = {"count": series.count, "lastTimestamp": timestamp(series.last)}
            try:
                await self._client.patch(EVENT, series.name, patch, namespace)
            except NotFound:
                series.stored = False  # events expire after an hour
            else:
                return
        body = {
            "apiVersion": EVENT.api_version,
            "kind": EVENT.kind,
            "metadata": {"name": series.name, "namespace": namespace},
            "involvedObject": to_json(said.about),
            "type": said.type,
            "reason": said.reason,
            "message": said.message,
            "count": series.count,
            "firstTimestamp": timestamp(series.first),
            "lastTimestamp": timestamp(series.last),
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": self._component,
        }
        # Raw, because what comes back is the event again, and nobody wants to decode it. Nor need the server look for
        # unknown fields, which costs it as much again as reading the event.
        query = {"fieldManager": self._client.field_manager, "fieldValidation": "Ignore"}
        await self._client.raw("POST", EVENT.path(namespace), query=query, body=encode(body))
        series.stored = True


def _without_version(about: ObjectReference) -> ObjectReference:
    """Drop the version, which differs each time: the event is about the object, not about one state of it."""
    return replace(about, resource_version="") if about.resource_version else about

"""What a process keeps of objects that came and went: nothing."""

import asyncio

import pytest

from spinney.api.events import ObjectReference
from spinney.api.keys import Key
from spinney.kube import event_series
from spinney.kube.cache import WatchCache
from spinney.kube.client import Client
from spinney.kube.controller import Controller, Requeue
from spinney.kube.errors import InternalError
from spinney.kube.events import EventRecorder
from spinney.kube.expectations import Expectations
from spinney.runtime import Runtime
from tests.kube.model import THING, ModelServer, stopped
from tests.kube.things import Thing
from tests.virtual_time import on_virtual_time
from tests.weighing import held_by


class Life:
    """A controller that fails once on each object, is asked again for a while, and deletes it."""

    def __init__(self) -> None:
        self.runtime = Runtime.virtual()
        self.server = ModelServer(self.runtime)
        client = Client(self.server, self.runtime)
        self.client = client
        self.cache = WatchCache(client, THING, Thing, runtime=self.runtime, indexes={"namespace": _namespace})
        self.cache._decoder._sharing = None  # bounded, but by more than a test can fill
        self.expectations = Expectations(self.runtime)
        self.cache.subscribe(self.expectations.observe)
        self.controller = Controller("things", self.reconcile, runtime=self.runtime)
        self.controller.watch(self.cache)
        self.recorder = EventRecorder(client, "things")

    async def reconcile(self, key: Key) -> Requeue | None:
        """Fail, then ask again, then delete."""
        found = self.cache.get(key)
        if found is None or not self.expectations.is_satisfied(key):
            return None
        if not self.controller.queue.failures(key):
            raise InternalError(500)
        with self.expectations.deleting(key, found.metadata.uid or ""):
            await self.client.delete(THING, key.name, key.namespace)
        return Requeue(60)

    async def day(self, number: int) -> None:
        """Have objects come, each in a namespace of its own, and go."""
        for index in range(40):
            name = f"thing-{number}-{index}"
            with self.expectations.creating(Key("", name)) as creation:
                creation.created(self.server.put(name, 1, namespace=name)["metadata"]["uid"])
        await self.runtime.clock.sleep(600)
        assert not self.server.objects

    @property
    def held(self) -> int:
        """Return how much the parts hold together."""
        parts = self.cache._rows, self.cache._known, self.cache._indexes, self.cache._subscribers
        queue = self.controller.queue
        queued = queue._lanes, queue._active, queue._timers, queue._failures
        return held_by((parts, queued, self.expectations._owners, self.expectations._awaited))


def _namespace(thing: Thing) -> list[str]:
    return [thing.metadata.namespace or ""]


@on_virtual_time
async def test_objects_that_came_and_went_leave_nothing() -> None:
    """Cache, indexes, queue and expectations hold after many objects what they held before the first."""
    life = Life()
    running = [asyncio.create_task(life.cache.run()), asyncio.create_task(life.controller.run())]
    await life.cache.wait_for_sync()
    before = life.held
    for number in range(3):
        await life.day(number)
    assert life.held == before
    for task in running:
        await stopped(task)


@on_virtual_time
async def test_events_about_many_objects_are_remembered_within_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A recorder remembers recent events only, whatever their number."""
    monkeypatch.setattr(event_series, "_REMEMBERED", 50)
    recorder = Life().recorder

    async def held_after(first: int, last: int) -> int:
        for number in range(first, last):
            about = ObjectReference(
                api_version="v1", kind="Thing", name=f"thing-{number}", namespace="x", uid=str(number)
            )
            recorder.event(about, "Warning", "Failed", "it did")
        await recorder.flush()
        remembered = recorder._correlator._series, recorder._correlator._similar, recorder._correlator._budgets
        return held_by((remembered, recorder._outbox, recorder._being_sent, recorder._senders))

    assert await held_after(100, 300) == await held_after(300, 600)

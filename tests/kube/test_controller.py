"""Controllers: woken by changes, patient with failures, honest about repairs."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext

import pytest

from spinney.api.keys import Key
from spinney.kube.cache import Change, WatchCache
from spinney.kube.client import Client
from spinney.kube.controller import Controller, Reconcile, Requeue
from spinney.runtime import Runtime
from tests.kube.model import THING, ModelServer, stopped
from tests.kube.things import Thing, a_cache
from tests.virtual_time import opening

A = Key("x", "a")


class Scene:
    """A server, a cache of its things, and a controller of them."""

    def __init__(self) -> None:
        self.runtime = Runtime.virtual()
        self.server = ModelServer(self.runtime)
        self.client = Client(self.server, self.runtime)
        self.cache: WatchCache[Thing] = a_cache(self.server, self.runtime)

    @asynccontextmanager
    async def running(
        self,
        reconcile: Reconcile,
        *,
        resync: float = 600.0,
        unless: Callable[[Change[Thing]], bool] | None = None,
    ) -> AsyncIterator[Controller]:
        """Run the controller inside the block."""
        controller = Controller("things", reconcile, runtime=self.runtime, resync_seconds=resync)
        controller.watch(self.cache, unless=unless)
        tasks = [asyncio.create_task(self.cache.run()), asyncio.create_task(controller.run())]
        try:
            yield controller
        finally:
            for task in tasks:
                await stopped(task)


given_a_scene = opening(lambda: nullcontext(Scene()))


@given_a_scene
async def test_every_change_leads_to_a_reconcile_that_sees_it(scene: Scene) -> None:
    """After the last change of an object there is a reconcile, and it finds that version in the cache."""
    seen: list[int | None] = []

    async def reconcile(key: Key) -> None:
        await scene.runtime.clock.sleep(0.3)
        thing = scene.cache.get(key)
        seen.append(thing.value if thing else None)

    async with scene.running(reconcile):
        for value in range(10):
            scene.server.put("a", value)
            await scene.runtime.clock.sleep(0.1)
        await scene.runtime.clock.sleep(5)
        assert seen[-1] == 9
        scene.server.remove("a")
        await scene.runtime.clock.sleep(5)
        assert seen[-1] is None


@given_a_scene
async def test_reconciles_of_one_key_never_overlap(scene: Scene) -> None:
    """However many workers there are, a key is worked on by one at a time; different keys go side by side."""
    busy: set[Key] = set()
    most = 0

    async def reconcile(key: Key) -> None:
        nonlocal most
        assert key not in busy
        busy.add(key)
        most = max(most, len(busy))
        await scene.runtime.clock.sleep(1)
        busy.remove(key)

    async with scene.running(reconcile) as controller:
        for round_number in range(10):
            for name in "abcdef":
                scene.server.put(name, round_number)
            await scene.runtime.clock.sleep(0.4)
        await scene.runtime.clock.sleep(30)
        assert controller.queue.idle
    assert most == 4


@given_a_scene
async def test_a_reconcile_that_was_cut_off_is_done_when_the_controller_runs_again(scene: Scene) -> None:
    """A process that gave its lease away and leads again forgets nothing that it was working on."""
    done: list[str] = []

    async def reconcile(key: Key) -> None:
        await scene.runtime.clock.sleep(10)
        done.append(key.name)

    controller = Controller("things", reconcile, runtime=scene.runtime)
    controller.enqueue(A)
    for seconds in (5, 15):
        assert done == []
        running = asyncio.create_task(controller.run())
        await scene.runtime.clock.sleep(seconds)
        await stopped(running)
    assert done == ["a"]


@given_a_scene
async def test_a_failing_reconcile_is_tried_again_with_growing_waits(scene: Scene) -> None:
    """Errors are retried, ever later, until one succeeds."""
    attempts: list[float] = []

    async def reconcile(_: Key) -> None:
        attempts.append(scene.runtime.clock.monotonic())
        if len(attempts) < 8:
            raise ValueError("not yet")

    async with scene.running(reconcile) as controller:
        scene.server.put("a", 1)
        await scene.runtime.clock.sleep(60)
        assert controller.queue.failures(A) == 0
    waits = [later - earlier for earlier, later in itertools.pairwise(attempts)]
    assert len(attempts) == 8
    assert waits == sorted(waits)


@pytest.mark.parametrize("requeue", [Requeue(after=30.0), Requeue()], ids=["after", "back-off"])
@given_a_scene
async def test_a_requeue_comes_back(scene: Scene, requeue: Requeue) -> None:
    """A reconcile that asks to be called again is, after the time it named or with back-off."""
    attempts: list[float] = []

    async def reconcile(_: Key) -> Requeue | None:
        attempts.append(scene.runtime.clock.monotonic())
        return requeue if len(attempts) == 1 else None

    async with scene.running(reconcile):
        scene.server.put("a", 1)
        await scene.runtime.clock.sleep(100)
    assert len(attempts) == 2
    assert attempts[1] - attempts[0] == pytest.approx(requeue.after or 0.01, rel=0.2)


@given_a_scene
async def test_a_resync_that_changes_nothing_is_no_repair(scene: Scene) -> None:
    """The safety resync calls for every key, and reconciles that only read leave the repair count at zero."""
    calls = 0

    async def reconcile(key: Key) -> None:
        nonlocal calls
        calls += 1
        await scene.client.get(THING, key.name, key.namespace)

    async with scene.running(reconcile, resync=60) as controller:
        scene.server.put("a", 1)
        await scene.runtime.clock.sleep(600)
        assert calls >= 9
        assert controller.repairs == 0


@given_a_scene
async def test_a_resync_that_writes_is_counted_as_a_repair(scene: Scene) -> None:
    """If a resync reconcile finds something to write, an event was missed, and the count says so."""
    desired = {"value": 1}

    async def reconcile(key: Key) -> None:
        thing = scene.cache.get(key)
        if thing is not None and thing.value != desired["value"]:
            await scene.client.patch(THING, key.name, {"value": desired["value"]}, key.namespace)

    async with scene.running(reconcile, resync=60) as controller:
        scene.server.put("a", 0)
        await scene.runtime.clock.sleep(30)
        assert controller.repairs == 0
        desired["value"] = 2  # nobody tells the controller
        await scene.runtime.clock.sleep(300)
        assert controller.repairs == 1


@given_a_scene
async def test_stop_lets_the_reconcile_under_way_finish(scene: Scene) -> None:
    """A graceful stop waits for what has begun and begins nothing new."""
    finished: list[Key] = []

    async def reconcile(key: Key) -> None:
        await scene.runtime.clock.sleep(10)
        finished.append(key)

    controller = Controller("things", reconcile, runtime=scene.runtime, workers=1)
    running = asyncio.create_task(controller.run())
    controller.enqueue(A)
    controller.enqueue(Key("x", "b"))
    await scene.runtime.clock.sleep(5)
    controller.stop()
    await running
    assert finished == [A]


@given_a_scene
async def test_a_change_that_needs_nothing_wakes_nobody(scene: Scene) -> None:
    """Changes for which ``unless`` holds lead to no reconcile, all others do."""
    seen: list[int | None] = []

    async def reconcile(key: Key) -> None:
        thing = scene.cache.get(key)
        seen.append(thing.value if thing else None)

    async with scene.running(reconcile, unless=lambda change: change.new is not None and change.new.value in (1, 3)):
        for value in range(4):
            scene.server.put("a", value)
            await scene.runtime.clock.sleep(1)
        assert seen == [0, 2]

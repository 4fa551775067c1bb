"""What readers of a watch cache see; how it recovers is in the tests of its faults."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from spinney.api.coordination import LEASE
from spinney.api.keys import Key
from spinney.kube.cache import Change, WatchCache, kept_up
from spinney.kube.client import Client
from spinney.kube.metrics import KubeMetrics
from spinney.kube.transport import Response
from spinney.runtime import Runtime, run_virtual
from tests.kube.model import THING, ModelServer, WatchFault, stopped
from tests.kube.things import Thing
from tests.virtual_time import on_virtual_time, opening


class Scene:
    """A server with two things and a cache of them."""

    def __init__(self, **options: Any) -> None:
        self.runtime = Runtime.virtual()
        self.server = ModelServer(self.runtime)
        self.metrics = KubeMetrics(CollectorRegistry())
        self.server.put("b", 2)
        self.server.put("a", 1)
        client = Client(self.server, self.runtime)
        self.cache: WatchCache[Thing] = WatchCache(
            client, THING, Thing, runtime=self.runtime, metrics=self.metrics, **options
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the cache inside the block, which begins when it has synced."""
        task = asyncio.create_task(self.cache.run())
        await self.cache.wait_for_sync()
        try:
            yield
        finally:
            await stopped(task)

    def count(self, name: str) -> float:
        """Return the value of a metric of the cache."""
        return self.metrics.registry.get_sample_value(name, {"resource": str(THING)}) or 0


given_a_scene = opening(lambda: nullcontext(Scene()))


@on_virtual_time
async def test_readers_see_objects_in_key_order() -> None:
    """Keys, items and index look-ups come in key order, whatever order objects arrived in."""
    scene = Scene(indexes={"odd": lambda thing: [(thing.value or 0) % 2 == 1]})
    async with scene.running():
        scene.server.put("0", 3, namespace="w")
        await scene.runtime.clock.sleep(1)
        cache = scene.cache
        assert list(cache) == [Key("w", "0"), Key("x", "a"), Key("x", "b")]
        assert [thing.value for thing in cache.values()] == [3, 1, 2]
        assert [thing.value for thing in cache.index("odd", value=True)] == [3, 1]
        assert cache.index("odd", "nonsense") == []
        assert cache.get(Key("x", "nobody")) is None
        assert len(cache) == 3


@on_virtual_time
async def test_an_index_follows_changes_and_can_be_added_late() -> None:
    """An object moves between values of an index, and a new index covers what is already held."""
    scene = Scene(indexes={"value": lambda thing: [thing.value]})
    async with scene.running():
        scene.server.put("a", 2)
        await scene.runtime.clock.sleep(1)
        scene.cache.add_index("late", lambda thing: [thing.value])
        for name in ("value", "late"):
            assert scene.cache.index_keys(name, 1) == []
            assert scene.cache.index_keys(name, 2) == [Key("x", "a"), Key("x", "b")]
        scene.server.remove("a")
        await scene.runtime.clock.sleep(1)
        assert scene.cache.index_keys("late", 2) == [Key("x", "b")]


@given_a_scene
async def test_a_late_subscriber_first_hears_what_is_there(scene: Scene) -> None:
    """A subscriber of a running cache gets every object, then changes, and nothing after it unsubscribed."""
    async with scene.running():
        heard: list[Change[Thing]] = []
        unsubscribe = scene.cache.subscribe(heard.append)
        assert [(change.key.name, change.old) for change in heard] == [("a", None), ("b", None)]
        scene.server.put("a", 5)
        await scene.runtime.clock.sleep(1)
        assert (heard[-1].old and heard[-1].old.value, heard[-1].new and heard[-1].new.value) == (1, 5)
        unsubscribe()
        scene.server.put("a", 6)
        await scene.runtime.clock.sleep(1)
        assert len(heard) == 3


@given_a_scene
async def test_an_object_of_another_shape_is_absent_and_counted(scene: Scene) -> None:
    """One object that does not decode does not keep the others out; it is as if it were not there."""
    scene.server.put("odd", "not a number")
    async with scene.running():
        assert [key.name for key in scene.cache] == ["a", "b"]
        assert scene.count("spinney_undecodable_objects_total") == 1
        scene.server.put("odd", 3)
        scene.server.put("a", "odd now")
        await scene.runtime.clock.sleep(1)
        assert [key.name for key in scene.cache] == ["b", "odd"]
        assert scene.count("spinney_undecodable_objects_total") == 2


@given_a_scene
async def test_a_silent_watch_is_replaced(scene: Scene) -> None:
    """A connection on which nothing comes any more, not even a bookmark, is given up and made anew."""
    scene.server.watch_faults.append(WatchFault("hang"))
    async with scene.running():
        scene.server.put("a", 9)
        await scene.runtime.clock.sleep(100)
        assert scene.cache.get(Key("x", "a")).value == 1  # type: ignore[union-attr]
        await scene.runtime.clock.sleep(100)
        assert scene.cache.get(Key("x", "a")).value == 9  # type: ignore[union-attr]
        assert scene.count("spinney_watch_relists_total") == 0


def watches(scene: Scene) -> int:
    """Return how many watches the server was asked for."""
    return sum("watch" in query for _, _, query in scene.server.requests)


def test_a_server_that_hangs_up_at_once_is_not_stormed() -> None:
    """Watches that end at once are retried ever later: few in ten minutes, not hundreds a second."""
    _not_stormed(lambda server: server.watch_faults.extend([WatchFault("close")] * 10_000))


def test_a_server_that_always_says_too_old_is_not_stormed() -> None:
    """A server that answers every watch with 410 is listed again ever later."""
    _not_stormed(lambda server: server.watch_faults.extend([WatchFault("expire")] * 10_000))


def _not_stormed(spoil: Callable[[ModelServer], None]) -> None:
    async def main() -> None:
        scene = Scene()
        spoil(scene.server)
        async with scene.running():
            await scene.runtime.clock.sleep(600)
            assert 10 < watches(scene) < 40

    run_virtual(main())


@given_a_scene
async def test_bookmarks_spare_a_quiet_kind_the_new_list(scene: Scene) -> None:
    """While other kinds move the server on, bookmarks keep a quiet kind's watch resumable."""
    async with scene.running():
        for _ in range(30):
            scene.server.put("noise", 1, resource=LEASE)
            await scene.runtime.clock.sleep(100)
            scene.server.compacted = scene.server.revision - 3
        assert watches(scene) > 3
        assert scene.count("spinney_watch_relists_total") == 0


@given_a_scene
async def test_a_relist_reports_only_what_changed(scene: Scene) -> None:
    """After a 410 subscribers hear of the objects that changed meanwhile, and of none that did not."""
    async with scene.running():
        heard: list[Change[Thing]] = []
        scene.cache.subscribe(heard.append)
        heard.clear()
        scene.server.down = True
        scene.server.watch_faults.append(WatchFault("drop"))
        await scene.runtime.clock.sleep(700)
        scene.server.put("a", 10)
        scene.server.remove("a")
        scene.server.put("a", 11)
        scene.server.put("c", 3)
        scene.server.compact()
        scene.server.down = False
        scene.server.watch_faults.clear()
        await scene.runtime.clock.sleep(60)
        story = [(c.key.name, c.old and c.old.value, c.new and c.new.value) for c in heard]
        assert story == [("a", 1, None), ("a", None, 11), ("c", None, 3)]
        assert scene.count("spinney_watch_relists_total") == 1


@pytest.mark.parametrize("refusals", [[], [403], [401, 403]])
@given_a_scene
async def test_a_restored_store_is_read_anew(scene: Scene, refusals: list[int]) -> None:
    """A server that is back at an older state says nothing to a watch from a later one; nothing stays hidden so.

    Nor where it does not know us at first: when it begins, it has read neither accounts nor rights.
    """
    async with scene.running():
        backup = scene.server.revision
        scene.server.put("a", 7)
        scene.server.put("c", 7)
        scene.server.remove("b")
        await scene.runtime.clock.sleep(1)
        scene.server.restore(backup)
        scene.server.fail_next.extend(Response(status, {}, b"") for status in refusals)
        scene.server.put("a", 8)  # in the version that was another's of it before
        await scene.runtime.clock.sleep(60)
        assert {key.name: thing.value for key, thing in scene.cache.items()} == {"a": 8, "b": 2}
        scene.server.put("d", 9)
        await scene.runtime.clock.sleep(1)
        assert {key.name: thing.value for key, thing in scene.cache.items()} == {"a": 8, "b": 2, "d": 9}


@given_a_scene
async def test_what_a_gateway_answers_is_no_empty_cluster(scene: Scene) -> None:
    """It says in JSON, and with a 200, that it is being maintained: everything is there still."""
    async with scene.running():
        before = dict(scene.cache.items())
        scene.server.fail_next.extend([Response(200, {}, b'{"message":"maintenance"}')] * 3)
        scene.server.interrupt("drop")
        heard: list[Change[Thing]] = []
        scene.cache.subscribe(heard.append)
        await scene.runtime.clock.sleep(60)
        assert not scene.server.fail_next
        assert [change.new for change in heard] == list(before.values())


@pytest.mark.parametrize(("busy", "questions"), [(0, 1), (5, 6)])
@given_a_scene
async def test_an_interruption_costs_a_small_question(scene: Scene, busy: int, questions: int) -> None:
    """A server that goes on where it was is asked for its version, and for no list, also one that is busy."""
    async with scene.running():
        before = len(scene.server.requests)
        scene.server.fail_next.extend([Response(429, {}, b"")] * busy)
        scene.server.interrupt("drop")
        await scene.runtime.clock.sleep(60)
        lists = [query for _, _, query in scene.server.requests[before:] if "watch" not in query]
        assert lists == [{"limit": "1"}] * questions
        assert scene.count("spinney_watch_relists_total") == 0


@given_a_scene
async def test_an_outage_is_told_once_and_so_is_its_end(scene: Scene) -> None:
    """An hour without an API server is a line for each sort of trouble, not one for each attempt."""
    async with scene.running():
        with capture_logs() as told:
            scene.server.down = True
            scene.server.interrupt("drop")
            await scene.runtime.clock.sleep(3600)
            scene.server.down = False
            await scene.runtime.clock.sleep(300)
        lines = [(line["event"], line["error"]) for line in told if line["log_level"] != "debug" and "error" in line]
        assert lines == [
            ("watch interrupted", "connection reset"),
            ("watch interrupted", "GET /apis/test.spinney.dev/v1/things: the server is down"),
        ]
        assert [line["event"] for line in told].count("watch goes on") == 1


@on_virtual_time
async def test_a_subscriber_that_raises_ends_who_waits() -> None:
    """Whoever waits for a cache to be read, or to change, gets its error instead of waiting for ever."""

    def odd(change: Change[Thing]) -> None:
        if change.new is not None and change.new.value == 3:
            raise LookupError("three")

    async def change(scene: Scene, *later: int) -> None:
        async with kept_up(scene.cache):
            for value in later:
                scene.server.put("a", value)
            await asyncio.Event().wait()

    for first, *later in ((3,), (1, 3)):
        scene = Scene()
        scene.cache.subscribe(odd)
        scene.server.put("a", first)
        with pytest.raises(LookupError, match="three"):
            await change(scene, *later)

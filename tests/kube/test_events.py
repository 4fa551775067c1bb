"""The event recorder: counted, combined, rationed, and never in the caller's way."""

import asyncio
from contextlib import nullcontext
from typing import Any, NamedTuple

import pytest

from spinney.api.core import EVENT
from spinney.api.events import ObjectReference
from spinney.kube.client import Client
from spinney.kube.events import EventRecorder, reference
from spinney.kube.manager import Manager
from spinney.kube.metrics import KubeMetrics
from spinney.kube.writes import counting_writes
from spinney.runtime import Runtime
from tests.kube.model import THING, ModelServer
from tests.kube.things import a_thing
from tests.virtual_time import on_virtual_time, opening


def a_pod(name: str, uid: str, version: str = "") -> ObjectReference:
    return ObjectReference(api_version="v1", kind="Pod", name=name, namespace="x", uid=uid, resource_version=version)


ABOUT = a_pod("web-0", "u1")


async def events(client: Client) -> list[dict[str, Any]]:
    """Return the events the server holds."""
    return list((await client.list(EVENT, "x")).items)


class Scene(NamedTuple):
    """A recorder on a model server."""

    recorder: EventRecorder
    client: Client
    server: ModelServer
    runtime: Runtime


def a_scene() -> Scene:
    runtime = Runtime.virtual()
    server = ModelServer(runtime)
    client = Client(server, runtime)
    return Scene(EventRecorder(client, "spinney", metrics=KubeMetrics()), client, server, runtime)


given_a_recorder = opening(lambda: nullcontext(a_scene()))


@given_a_recorder
async def test_an_event_says_what_kubectl_shows(scene: Scene) -> None:
    """An event names its object, reason, message, type, source and times."""
    scene.recorder.event(ABOUT, "Warning", "Unschedulable", "no node fits")
    await scene.recorder.flush()
    (event,) = await events(scene.client)
    assert event["involvedObject"] == {
        "apiVersion": "v1", "kind": "Pod", "name": "web-0", "namespace": "x", "uid": "u1",
    }  # fmt: skip
    assert (event["type"], event["reason"], event["message"]) == ("Warning", "Unschedulable", "no node fits")
    assert (event["count"], event["source"]) == (1, {"component": "spinney"})
    assert event["firstTimestamp"] == event["lastTimestamp"] == "2026-01-01T00:00:00Z"


@given_a_recorder
async def test_an_event_about_an_object_of_any_kind_is_found_by_what_kubectl_asks_for(scene: Scene) -> None:
    """``kubectl describe`` looks for events by the uid, kind and version of API of the object."""
    scene.recorder.event(reference(THING, a_thing()), "Normal", "Seen", "hello")
    await scene.recorder.flush()
    (event,) = await events(scene.client)
    about = event["involvedObject"]
    assert (about["apiVersion"], about["kind"], about["uid"]) == (THING.api_version, THING.kind, a_thing().metadata.uid)
    assert (about["name"], about.get("namespace")) == (a_thing().metadata.name, a_thing().metadata.namespace)


@given_a_recorder
async def test_what_becomes_of_events_is_counted(scene: Scene) -> None:
    """Those that were sent, those said again before they were, and those that the server did not take."""
    metrics = KubeMetrics()
    recorder = EventRecorder(scene.client, "spinney", metrics=metrics)

    def counted() -> dict[str, float]:
        outcomes = ("sent", "merged", "dropped", "failed")
        found = {
            each: metrics.registry.get_sample_value("spinney_events_total", {"outcome": each}) for each in outcomes
        }
        return {outcome: value for outcome, value in found.items() if value}

    for _ in range(2):
        recorder.event(ABOUT, "Normal", "Scheduled", "on n1")
    await recorder.flush()
    assert counted() == {"sent": 1, "merged": 1}
    scene.server.down = True
    recorder.event(ABOUT, "Normal", "Scheduled", "on n2")
    await recorder.flush()
    assert counted() == {"sent": 1, "merged": 1, "failed": 1}


@given_a_recorder
async def test_the_same_event_again_raises_its_count(scene: Scene) -> None:
    """A repeated event updates count and last time of the one that is there."""
    for version in ("5", "6", "7"):
        about = a_pod("web-0", "u1", version)
        scene.recorder.event(about, "Warning", "Unschedulable", "no node fits")
        await scene.recorder.flush()
        await scene.runtime.clock.sleep(60)
    (event,) = await events(scene.client)
    assert event["count"] == 3
    assert (event["firstTimestamp"], event["lastTimestamp"]) == ("2026-01-01T00:00:00Z", "2026-01-01T00:02:00Z")


@given_a_recorder
async def test_an_event_that_expired_is_written_anew(scene: Scene) -> None:
    """When the server has dropped the old event, the count goes on in a new one."""
    scene.recorder.event(ABOUT, "Normal", "Scheduled", "on n1")
    await scene.recorder.flush()
    for event in await events(scene.client):
        scene.server.remove(event["metadata"]["name"], resource=EVENT)
    scene.recorder.event(ABOUT, "Normal", "Scheduled", "on n1")
    await scene.recorder.flush()
    assert [event["count"] for event in await events(scene.client)] == [2]


@given_a_recorder
async def test_similar_events_are_combined(scene: Scene) -> None:
    """Events that differ only in their message are combined once there are ten of them."""
    for number in range(20):
        scene.recorder.event(ABOUT, "Warning", "Unschedulable", f"attempt {number}")
    await scene.recorder.flush()
    messages = {event["message"]: event["count"] for event in await events(scene.client)}
    assert len(messages) == 11
    (combined,) = [message for message in messages if "combined" in message]
    assert messages[combined] == 10


@given_a_recorder
async def test_an_object_in_trouble_cannot_flood_the_server(scene: Scene) -> None:
    """Each object has a budget of 25 events that refills one every five minutes; other objects have their own."""
    for _ in range(200):
        scene.recorder.event(ABOUT, "Warning", "Unschedulable", "no node fits")
        await scene.recorder.flush()
    assert [event["count"] for event in await events(scene.client)] == [25]
    scene.recorder.event(a_pod("web-1", "u2"), "Normal", "Scheduled", "on n1")
    await scene.runtime.clock.sleep(601)
    for _ in range(10):
        scene.recorder.event(ABOUT, "Warning", "Unschedulable", "no node fits")
    await scene.recorder.flush()
    assert sorted(event["count"] for event in await events(scene.client)) == [1, 27]


@given_a_recorder
async def test_a_server_that_is_down_does_not_disturb_the_caller(scene: Scene) -> None:
    """An event that cannot be stored is given up; later ones are stored."""
    scene.server.down = True
    scene.recorder.event(ABOUT, "Normal", "Scheduled", "on n1")
    await scene.recorder.flush()
    scene.server.down = False
    scene.recorder.event(ABOUT, "Normal", "Scheduled", "on n1")
    await scene.recorder.flush()
    assert [event["count"] for event in await events(scene.client)] == [2]


@given_a_recorder
async def test_an_event_is_not_a_write_of_the_reconcile(scene: Scene) -> None:
    """Recording inside a block that counts writes counts nothing."""
    with counting_writes() as writes:
        scene.recorder.event(reference(THING, a_thing()), "Normal", "Seen", "hello")
        await scene.recorder.flush()
        assert writes.count == 0
        await scene.client.create(THING, {"metadata": {"name": "a"}}, "x")
        assert writes.count == 1


@given_a_recorder
async def test_a_burst_of_events_about_many_objects_is_sent_whole(scene: Scene) -> None:
    """Thousands of events recorded at once are all stored, a few at a time, and those of one object in order."""
    for number in range(3000):
        about = a_pod(f"p{number}", f"u{number}")
        scene.recorder.event(about, "Warning", "Unschedulable", "no node fits")
        scene.recorder.event(about, "Normal", "Scheduled", "on n1")
    await scene.recorder.flush()
    found = await events(scene.client)
    assert len(found) == 6000
    order: dict[str, list[str]] = {}
    for event in sorted(found, key=lambda event: int(event["metadata"]["resourceVersion"])):
        order.setdefault(event["involvedObject"]["name"], []).append(event["reason"])
    assert set(map(tuple, order.values())) == {("Unschedulable", "Scheduled")}


@pytest.mark.parametrize("writer", ["scheduler", "grouper"], ids=["of its own", "of another component"])
@given_a_recorder
async def test_events_give_way_to_urgent_writes(scene: Scene, writer: str) -> None:
    """While a component of the process has urgent writes, fewer events go out at a time; then the rest follows fast."""
    scene.server.latency = 1.0
    manager = Manager(scene.client, scene.runtime)
    recorder = manager.recorder("scheduler")
    urgent = recorder if writer == "scheduler" else manager.recorder(writer)
    with urgent.giving_way():
        for number in range(80):
            recorder.event(a_pod(f"p{number}", f"u{number}"), "Normal", "Seen", "hello")
        await scene.runtime.clock.sleep(5.5)
        told = len(scene.server.state(EVENT))
    start = scene.runtime.clock.monotonic()
    await recorder.flush()
    assert 0 < told <= 10
    assert len(scene.server.state(EVENT)) == 80
    assert scene.runtime.clock.monotonic() - start <= 10.0


@given_a_recorder
async def test_writes_that_nobody_waits_for_wait_for_a_calm_moment_but_not_for_ever(scene: Scene) -> None:
    """They come after the urgent writes, and where those never end, so many seconds after those began."""

    async def calm_after(seconds: float) -> float:
        await scene.recorder.when_calm(seconds)
        return scene.runtime.clock.monotonic() - start

    start = scene.runtime.clock.monotonic()
    assert await calm_after(10.0) == 0.0
    with scene.recorder.giving_way():
        after = asyncio.create_task(calm_after(10.0))
        await scene.runtime.clock.sleep(4.0)
        with scene.recorder.giving_way():
            await scene.runtime.clock.sleep(1.0)
    assert await after == 5.0
    with scene.recorder.giving_way():
        assert await calm_after(10.0) == 15.0
        assert await calm_after(10.0) == 15.0


@on_virtual_time
async def test_a_process_that_stops_does_not_wait_for_all_its_events() -> None:
    """What a slow server has not taken by then is dropped, and counted as such."""

    class Slow(ModelServer):
        async def request(self, request: Any) -> Any:
            await self.runtime.clock.sleep(1)
            return await super().request(request)

    runtime = Runtime.virtual()
    server = Slow(runtime)
    server.runtime = runtime
    client, metrics = Client(server, runtime), KubeMetrics()
    recorder = EventRecorder(client, "spinney", metrics=metrics)
    for number in range(1000):
        recorder.event(a_pod(f"web-{number}", "u"), "Normal", "Scheduled", "there")
    began = runtime.clock.monotonic()
    await recorder.close(2.5)

    assert runtime.clock.monotonic() - began == 2.5
    assert 0 < len(await events(client)) < 1000
    assert metrics.events.labels("dropped")._value.get() > 0

"""The event recorder: counted, combined, rationed, and never in the caller's way."""

import asyncio
from typing import Any

from spinney.api.core import EVENT
from spinney.api.events import ObjectReference
from spinney.kube import Client
from spinney.kube.events import EventRecorder, reference
from spinney.kube.manager import Manager
from spinney.kube.metrics import KubeMetrics
from spinney.kube.writes import counting_writes
from spinney.runtime import Runtime, run_virtual
from tests.kube.model import THING, ModelServer
from tests.kube.things import a_thing
from tests.virtual_time import on_virtual_time


def a_pod(name: str, uid: str, version: str = "") -> ObjectReference:
    """Return a reference to a pod."""
    return ObjectReference(api_version="v1", kind="Pod", name=name, namespace="x", uid=uid, resource_version=version)


ABOUT = a_pod("web-0", "u1")


async def events(client: Client) -> list[dict[str, Any]]:
    """Return the events the server holds."""
    return list((await client.list(EVENT, "x")).items)


def recorded(scenario: Any) -> None:
    """Run a scenario with a recorder on a model server."""

    async def main() -> None:
        runtime = Runtime.virtual()
        server = ModelServer(runtime)
        client = Client(server, runtime)
        await scenario(EventRecorder(client, "spinney", metrics=KubeMetrics()), client, server, runtime)

    run_virtual(main())


def test_an_event_says_what_kubectl_shows() -> None:
    """An event names its object, reason, message, type, source and times."""

    async def scenario(recorder: EventRecorder, client: Client, _: ModelServer, __: Runtime) -> None:
        recorder.event(ABOUT, "Warning", "Unschedulable", "no node fits")
        await recorder.flush()
        (event,) = await events(client)
        assert event["involvedObject"] == {
            "apiVersion": "v1", "kind": "Pod", "name": "web-0", "namespace": "x", "uid": "u1",
        }  # fmt: skip
        assert (event["type"], event["reason"], event["message"]) == ("Warning", "Unschedulable", "no node fits")
        assert (event["count"], event["source"]) == (1, {"component": "spinney"})
        assert event["firstTimestamp"] == event["lastTimestamp"] == "2026-01-01T00:00:00Z"

    recorded(scenario)


def test_the_same_event_again_raises_its_count() -> None:
    """A repeated event updates count and last time of the one that is there."""

    async def scenario(recorder: EventRecorder, client: Client, _: ModelServer, runtime: Runtime) -> None:
        for version in ("5", "6", "7"):
            about = a_pod("web-0", "u1", version)
            recorder.event(about, "Warning", "Unschedulable", "no node fits")
            await recorder.flush()
            await runtime.clock.sleep(60)
        (event,) = await events(client)
        assert event["count"] == 3
        assert (event["firstTimestamp"], event["lastTimestamp"]) == ("2026-01-01T00:00:00Z", "2026-01-01T00:02:00Z")

    recorded(scenario)


def test_an_event_that_expired_is_written_anew() -> None:
    """When the server has dropped the old event, the count goes on in a new one."""

    async def scenario(recorder: EventRecorder, client: Client, server: ModelServer, _: Runtime) -> None:
        recorder.event(ABOUT, "Normal", "Scheduled", "on n1")
        await recorder.flush()
        for event in await events(client):
            server.remove(event["metadata"]["name"], resource=EVENT)
        recorder.event(ABOUT, "Normal", "Scheduled", "on n1")
        await recorder.flush()
        assert [event["count"] for event in await events(client)] == [2]

    recorded(scenario)


def test_similar_events_are_combined() -> None:
    """Events that differ only in their message are combined once there are ten of them."""

    async def scenario(recorder: EventRecorder, client: Client, _: ModelServer, __: Runtime) -> None:
        for number in range(20):
            recorder.event(ABOUT, "Warning", "Unschedulable", f"attempt {number}")
        await recorder.flush()
        messages = {event["message"]: event["count"] for event in await events(client)}
        assert len(messages) == 11
        (combined,) = [message for message in messages if "combined" in message]
        assert messages[combined] == 10

    recorded(scenario)


def test_an_object_in_trouble_cannot_flood_the_server() -> None:
    """Each object has a budget of 25 events that refills one every five minutes; other objects have their own."""

    async def scenario(recorder: EventRecorder, client: Client, server: ModelServer, runtime: Runtime) -> None:
        for _ in range(200):
            recorder.event(ABOUT, "Warning", "Unschedulable", "no node fits")
            await recorder.flush()
        assert [event["count"] for event in await events(client)] == [25]
        recorder.event(a_pod("web-1", "u2"), "Normal", "Scheduled", "on n1")
        await runtime.clock.sleep(601)
        for _ in range(10):
            recorder.event(ABOUT, "Warning", "Unschedulable", "no node fits")
        await recorder.flush()
        assert sorted(event["count"] for event in await events(client)) == [1, 27]

    recorded(scenario)


def test_a_server_that_is_down_does_not_disturb_the_caller() -> None:
    """An event that cannot be stored is given up; later ones are stored."""

    async def scenario(recorder: EventRecorder, client: Client, server: ModelServer, _: Runtime) -> None:
        server.down = True
        recorder.event(ABOUT, "Normal", "Scheduled", "on n1")
        await recorder.flush()
        server.down = False
        recorder.event(ABOUT, "Normal", "Scheduled", "on n1")
        await recorder.flush()
        assert [event["count"] for event in await events(client)] == [2]

    recorded(scenario)


def test_an_event_is_not_a_write_of_the_reconcile() -> None:
    """Recording inside a block that counts writes counts nothing."""

    async def scenario(recorder: EventRecorder, client: Client, _: ModelServer, __: Runtime) -> None:
        with counting_writes() as writes:
            recorder.event(reference(THING, a_thing()), "Normal", "Seen", "hello")
            await recorder.flush()
            assert writes.count == 0
            await client.create(THING, {"metadata": {"name": "a"}}, "x")
            assert writes.count == 1

    recorded(scenario)


def test_a_burst_of_events_about_many_objects_is_sent_whole() -> None:
    """Thousands of events recorded at once are all stored, a few at a time, and those of one object in order."""

    async def scenario(recorder: EventRecorder, client: Client, server: ModelServer, _: Runtime) -> None:
        for number in range(3000):
            about = a_pod(f"p{number}", f"u{number}")
            recorder.event(about, "Warning", "Unschedulable", "no node fits")
            recorder.event(about, "Normal", "Scheduled", "on n1")
        await recorder.flush()
        found = await events(client)
        assert len(found) == 6000
        order: dict[str, list[str]] = {}
        for event in sorted(found, key=lambda event: int(event["metadata"]["resourceVersion"])):
            order.setdefault(event["involvedObject"]["name"], []).append(event["reason"])
        assert set(map(tuple, order.values())) == {("Unschedulable", "Scheduled")}

    recorded(scenario)


def test_events_give_way_to_urgent_writes() -> None:
    """While somebody has urgent writes to do, fewer events go out at a time; afterwards the rest follows quickly."""

    async def scenario(recorder: EventRecorder, client: Client, server: ModelServer, runtime: Runtime) -> None:
        server.latency = 1.0
        with recorder.giving_way():
            for number in range(80):
                recorder.event(a_pod(f"p{number}", f"u{number}"), "Normal", "Seen", "hello")
            await runtime.clock.sleep(5.5)
            told = len(server.state(EVENT))
        start = runtime.clock.monotonic()
        await recorder.flush()
        assert 0 < told <= 10
        assert len(server.state(EVENT)) == 80
        assert runtime.clock.monotonic() - start <= 10.0

    recorded(scenario)


def test_events_of_one_component_give_way_to_writes_of_another() -> None:
    """The components of a process share one API server: the grouper's writes come before the scheduler's events."""

    async def scenario(recorder: EventRecorder, client: Client, server: ModelServer, runtime: Runtime) -> None:
        server.latency = 1.0
        manager = Manager(client, runtime)
        events, other = manager.recorder("scheduler"), manager.recorder("grouper")
        with other.giving_way():
            for number in range(80):
                events.event(a_pod(f"p{number}", f"u{number}"), "Normal", "Seen", "hello")
            await runtime.clock.sleep(5.5)
            told = len(server.state(EVENT))
        start = runtime.clock.monotonic()
        await events.flush()
        assert 0 < told <= 10
        assert len(server.state(EVENT)) == 80
        assert runtime.clock.monotonic() - start <= 10.0

    recorded(scenario)


def test_writes_that_nobody_waits_for_wait_for_a_calm_moment_but_not_for_ever() -> None:
    """They come after the urgent writes, and where those never end, so many seconds after those began."""

    async def scenario(recorder: EventRecorder, client: Client, server: ModelServer, runtime: Runtime) -> None:
        async def calm_after(seconds: float) -> float:
            await recorder.when_calm(seconds)
            return runtime.clock.monotonic() - start

        start = runtime.clock.monotonic()
        assert await calm_after(10.0) == 0.0
        with recorder.giving_way():
            after = asyncio.create_task(calm_after(10.0))
            await runtime.clock.sleep(4.0)
            with recorder.giving_way():
                await runtime.clock.sleep(1.0)
        assert await after == 5.0
        with recorder.giving_way():
            assert await calm_after(10.0) == 15.0
            assert await calm_after(10.0) == 15.0

    recorded(scenario)


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

"""What is said about pods that wait: once, the latest, and never about another pod of the same name."""

from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime

from spinney.api.core import EVENT, POD, Pod
from spinney.cluster.classes import RequestClasses
from spinney.cluster.pods import record_of
from spinney.cluster.resources import ResourceAxis
from spinney.kube.client import Client, PatchKind
from spinney.kube.events import EventRecorder
from spinney.kube.keys import Key
from spinney.kube.transport import Request, Response, StreamingResponse
from spinney.reporting.pods import PodStatusWriter, PodVerdict
from spinney.runtime import Runtime
from tests.conftest import Cluster
from tests.virtual_time import on_virtual_time

MANIFEST = {
    "metadata": {"name": "waits"},
    "spec": {"schedulerName": "nobody", "containers": [{"name": "main", "image": "pause"}]},
}


def a_writer(cluster: Cluster, events: EventRecorder) -> PodStatusWriter:
    return PodStatusWriter(cluster.client, events, event_reason="Unschedulable")


async def message_on(cluster: Cluster) -> str:
    pod = await cluster.client.get(POD, "waits", cluster.namespace, type=Pod)
    return next((condition.message for condition in pod.status.conditions if condition.type == "PodScheduled"), "")


async def test_the_latest_verdict_is_the_one_that_stays(cluster: Cluster) -> None:
    """Verdicts that follow each other quickly end with the last one in the condition; the same again is not written."""
    events = EventRecorder(cluster.client, "test-scheduler")
    writer = a_writer(cluster, events)
    pod = await cluster.client.create(POD, MANIFEST, cluster.namespace, type=Pod)
    key, uid = Key(cluster.namespace, "waits"), pod.metadata.uid or ""

    for message in ("no node", "no room", "no quota", "no quota"):
        writer.waits(PodVerdict(key, uid, message, message))
    await writer.flush()
    await events.flush()

    assert await message_on(cluster) == "no quota"
    recorded = await cluster.client.list(EVENT, cluster.namespace)
    assert sorted(event["message"] for event in recorded.items) == ["no node", "no quota", "no room"]


async def test_a_pod_waits_since_before_its_scheduler_was_started_anew(cluster: Cluster) -> None:
    """Another process that refuses it in other words leaves the time of its condition as it is."""
    events = EventRecorder(cluster.client, "test-scheduler")
    await cluster.client.create(POD, MANIFEST, cluster.namespace)
    since = datetime(2025, 6, 1, tzinfo=UTC)
    refused = {"type": "PodScheduled", "status": "False", "lastTransitionTime": "2025-06-01T00:00:00Z"}
    status = {"status": {"conditions": [refused]}}
    await cluster.client.patch(POD, "waits", status, cluster.namespace, kind=PatchKind.STRATEGIC, subresource="status")
    pod = await cluster.client.get(POD, "waits", cluster.namespace, type=Pod)

    writer = a_writer(cluster, events)
    writer.all_wait([record_of(pod, RequestClasses(ResourceAxis()))], "Unschedulable", "no room")
    await writer.flush()
    await events.flush()

    told = (await cluster.client.get(POD, "waits", cluster.namespace, type=Pod)).condition("PodScheduled")
    assert told is not None
    assert (told.message, told.last_transition_time) == ("no room", since)


async def test_a_pod_that_took_the_name_is_not_told(cluster: Cluster) -> None:
    """A verdict on a pod that is gone is not written to the one that was created in its place, and nothing fails."""
    events = EventRecorder(cluster.client, "test-scheduler")
    writer = a_writer(cluster, events)
    await cluster.client.create(POD, MANIFEST, cluster.namespace)

    stale = PodVerdict(Key(cluster.namespace, "waits"), "11111111-2222-3333-4444-555555555555", "no room", "no room")
    writer.waits(stale)
    await writer.flush()
    await events.flush()

    assert await message_on(cluster) == ""


class SlowServer:
    """Takes a second for every answer, and counts the requests."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.asked = 0

    async def request(self, request: Request) -> Response:
        """Answer after a second."""
        self.asked += 1
        await self.runtime.clock.sleep(1)
        return Response(200, {}, b"{}")

    def stream(self, request: Request) -> AbstractAsyncContextManager[StreamingResponse]:
        """Nobody watches."""
        raise NotImplementedError

    async def close(self) -> None:
        """Nothing is open."""


@on_virtual_time
async def test_a_writer_that_is_closed_drops_what_it_cannot_write_at_once() -> None:
    """A process that stops does not wait until each of a thousand pods says why it waits."""
    runtime = Runtime.virtual()
    server = SlowServer(runtime)
    client = Client(server, runtime)
    events = EventRecorder(client, "test-scheduler")
    writer = PodStatusWriter(client, events, event_reason="Unschedulable")
    for n in range(1000):
        writer.waits(PodVerdict(Key("x", f"waits-{n}"), "uid", "no room", "no room"))

    before = runtime.clock.monotonic()
    await writer.close()
    await events.close(0)

    assert runtime.clock.monotonic() - before <= 1
    assert server.asked < 100

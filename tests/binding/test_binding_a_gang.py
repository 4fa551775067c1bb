"""Placements become bindings, on the embedded cluster and on a real one."""

from spinney.api.core import EVENT, NODE, POD, Pod
from spinney.binding.binder import Binder
from spinney.binding.placement import GangPlacement, Placement
from spinney.kube.events import EventRecorder
from spinney.kube.keys import Key
from spinney.kube.transport import Response
from tests.conftest import Cluster
from tests.scheduler.process.world import FaultyTransport


async def a_node(cluster: Cluster, name: str) -> None:
    await cluster.client.create(NODE, {"metadata": {"name": name}})


async def a_pending_pod(cluster: Cluster, name: str) -> Placement:
    manifest = {
        "metadata": {"name": name},
        "spec": {"schedulerName": "nobody", "containers": [{"name": "main", "image": "pause"}]},
    }
    pod = await cluster.client.create(POD, manifest, cluster.namespace, type=Pod)
    return Placement(pod=Key(cluster.namespace, name), uid=pod.metadata.uid or "", node="n1")


async def node_of(cluster: Cluster, name: str) -> str:
    pod = await cluster.client.get(POD, name, cluster.namespace, type=Pod)
    return pod.spec.node_name


async def test_every_pod_of_a_gang_is_bound_and_says_so(cluster: Cluster) -> None:
    """Binding a gang binds each of its pods and leaves a Scheduled event on each."""
    await a_node(cluster, "n1")
    placements = tuple([await a_pending_pod(cluster, f"p{index}") for index in range(5)])
    events = EventRecorder(cluster.client, "test-scheduler")

    outcome = await Binder(cluster.client, events).bind(GangPlacement("ns/gang", placements))

    assert not outcome.failed
    assert {await node_of(cluster, f"p{index}") for index in range(5)} == {"n1"}
    await events.flush()
    recorded = await cluster.client.list(EVENT, cluster.namespace)
    assert {event["involvedObject"]["name"] for event in recorded.items if event["reason"] == "Scheduled"} == {
        f"p{index}" for index in range(5)
    }


async def test_a_pod_recreated_since_the_decision_is_not_bound(cluster: Cluster) -> None:
    """A pod of the same name but another uid is left alone, and the rest of the gang is bound."""
    await a_node(cluster, "n1")
    stale = await a_pending_pod(cluster, "p0")
    await cluster.client.delete(POD, "p0", cluster.namespace)
    await a_pending_pod(cluster, "p0")
    good = await a_pending_pod(cluster, "p1")
    events = EventRecorder(cluster.client, "test-scheduler")

    outcome = await Binder(cluster.client, events).bind(GangPlacement("ns/gang", (stale, good)))

    assert [failure.placement for failure in outcome.failed] == [stale]
    assert outcome.bound == (good,)
    assert await node_of(cluster, "p0") == ""
    await events.flush()


async def test_a_repeated_bind_counts_as_bound(cluster: Cluster) -> None:
    """Binding again what an earlier, unanswered attempt had bound to the same node succeeds."""
    await a_node(cluster, "n1")
    placement = await a_pending_pod(cluster, "p0")
    events = EventRecorder(cluster.client, "test-scheduler")
    binder = Binder(cluster.client, events)
    await binder.bind(GangPlacement("ns/gang", (placement,)))

    outcome = await binder.bind(GangPlacement("ns/gang", (placement,)))

    assert not outcome.failed
    await events.flush()


async def test_a_bind_that_a_gateway_answered_is_none(cluster: Cluster) -> None:
    """A gateway that says 200 to a bind, in a page of its own, has bound nothing; the bind is tried again."""
    await a_node(cluster, "n1")
    placement = await a_pending_pod(cluster, "p0")
    gateway = FaultyTransport(cluster.client.transport)
    pages = [Response(200, {}, b"<html>maintenance</html>")]
    gateway.fault = lambda method, path: pages.pop() if path.endswith("/binding") and pages else None
    events = EventRecorder(cluster.client, "test-scheduler")

    outcome = await Binder(cluster.client.over(gateway), events).bind(GangPlacement("ns/gang", (placement,)))

    assert not outcome.failed
    assert await node_of(cluster, "p0") == "n1"
    await events.flush()

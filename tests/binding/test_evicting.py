"""Victims go together or not at all, on the embedded cluster and on a real one."""

from spinney.api.core import EVENT, NODE, POD, Pod
from spinney.api.policy import POD_DISRUPTION_BUDGET
from spinney.binding.evicting import Disruption, Evictor, Victim
from spinney.binding.placement import pod_reference
from spinney.kube.events import EventRecorder
from spinney.kube.keys import Key
from tests.conftest import Cluster


async def a_running_pod(cluster: Cluster, name: str, **labels: str) -> Victim:
    """Create a pod, bind it and say that it runs."""
    spec = {"schedulerName": "nobody", "terminationGracePeriodSeconds": 0}
    containers = [{"name": "main", "image": "pause"}]
    manifest = {"metadata": {"name": name, "labels": labels}, "spec": {**spec, "containers": containers}}
    pod = await cluster.client.create(POD, manifest, cluster.namespace, type=Pod)
    await cluster.client.bind(cluster.namespace, name, pod.metadata.uid, "n1")
    ready = {"type": "Ready", "status": "True"}
    status = {"status": {"phase": "Running", "conditions": [ready]}}
    await cluster.client.patch(POD, name, status, cluster.namespace, subresource="status")
    return Victim(Key(cluster.namespace, name), pod.metadata.uid or "", "preempted by job taker")


async def left(cluster: Cluster) -> set[str]:
    """Return the pods that are not on their way out."""
    pods = (await cluster.client.list(POD, cluster.namespace, type=Pod)).items
    return {pod.metadata.name for pod in pods if not pod.metadata.deleting}


async def test_nobody_is_evicted_unless_everybody_may_be(cluster: Cluster) -> None:
    """While a budget protects one victim the other stays too, and the beneficiary is told; later both go."""
    await cluster.client.create(NODE, {"metadata": {"name": "n1"}})
    free = await a_running_pod(cluster, "free")
    kept = await a_running_pod(cluster, "kept", app="kept")
    spec = {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "kept"}}}
    await cluster.client.create(POD_DISRUPTION_BUDGET, {"metadata": {"name": "b"}, "spec": spec}, cluster.namespace)
    taker = await a_running_pod(cluster, "taker")
    events = EventRecorder(cluster.client, "test-scheduler")
    disruption = Disruption("taker", (free, kept), pod_reference(taker.pod, taker.uid))

    assert await Evictor(cluster.client, events).evict(disruption) == ()
    assert await left(cluster) == {"free", "kept", "taker"}

    await cluster.client.delete(POD_DISRUPTION_BUDGET, "b", cluster.namespace)
    assert await Evictor(cluster.client, events).evict(disruption) == (free, kept)
    assert await left(cluster) == {"taker"}
    await events.flush()
    said = {
        (each["involvedObject"]["name"], each["reason"])
        for each in (await cluster.client.list(EVENT, cluster.namespace)).items
    }
    assert said >= {("taker", "EvictRefused"), ("taker", "Evict"), ("free", "Evict"), ("kept", "Evict")}

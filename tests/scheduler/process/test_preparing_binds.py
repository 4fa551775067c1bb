"""What pods need before they are bound, on the embedded cluster and on a real one: volumes and devices."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import pytest

from spinney.api.core import EVENT, NODE, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, POD, Pod
from spinney.api.resource_claims import DEVICE_CLASS, RESOURCE_CLAIM, RESOURCE_SLICE, ResourceClaim
from spinney.api.storage import SELECTED_NODE, STORAGE_CLASS
from spinney.api.struct import JSON
from spinney.api.workload_v1beta1 import POD_GROUP
from spinney.binding.device_claims import DeviceClaims
from spinney.binding.placement import ClaimAllocation, Placement
from spinney.cluster.dra.allocating import GivenDevice
from spinney.kube.keys import Key
from spinney.kube.transport import Response
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.framework.results import Binding
from spinney.scheduler.process.commit import BookPositions
from spinney.scheduler.process.effects import ClusterEffects
from spinney.scheduler.process.process import SchedulerProcess
from tests.conftest import Cluster
from tests.scheduler.process.world import Fault, FaultyTransport, running, status

TIMEOUT = 6.0


@asynccontextmanager
async def scheduling(cluster: Cluster, fault: Fault | None = None) -> AsyncIterator[SchedulerProcess]:
    """Run a scheduler of this test's own for the time of the block, on a connection that may fail."""
    config = SchedulerConfig(scheduler_names=(cluster.namespace,), volume_binding_timeout_seconds=TIMEOUT)
    client = cluster.connect("spinney-scheduler")
    if fault is not None:
        client.transport = faulty = FaultyTransport(client.transport)
        faulty.fault = fault
    async with running(SchedulerProcess(client, config)) as process:
        yield process


async def eventually(cluster: Cluster, holds: Callable[[], Awaitable[bool]], seconds: float = 60.0) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(seconds):
        while not await holds():
            await cluster.runtime.clock.sleep(0.1)


async def a_node(cluster: Cluster, name: str) -> str:
    """Create a node that only pods of this test can use."""
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "10"}
    named = f"{cluster.namespace}-{name}"
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    labels = {"for": cluster.namespace, "kubernetes.io/hostname": named}
    await cluster.client.create(NODE, {"metadata": {"name": named, "labels": labels}})
    status = {"status": {"allocatable": amounts, "capacity": amounts, "conditions": [ready]}}
    await cluster.client.patch(NODE, named, status, subresource="status")
    # A real control plane taints a node that has no kubelet yet.
    await cluster.client.patch(NODE, named, {"spec": {"taints": None}})
    return named


async def a_pod(cluster: Cluster, name: str, **more: object) -> None:
    """Create a pod for the scheduler of this test."""
    spec = {
        "schedulerName": cluster.namespace,
        "nodeSelector": {"for": cluster.namespace},
        "containers": [{"name": "main", "image": "pause", **more.pop("container", {})}],  # type: ignore[dict-item]
        **more,
    }
    await cluster.client.create(POD, {"metadata": {"name": name}, "spec": spec}, cluster.namespace)


async def a_class(cluster: Cluster, provisioner: str) -> str:
    """Create a storage class whose volumes wait for their first consumer."""
    body = {"metadata": {"name": cluster.namespace}, "provisioner": provisioner}
    await cluster.client.create(STORAGE_CLASS, {**body, "volumeBindingMode": "WaitForFirstConsumer"})
    return cluster.namespace


async def a_claim(cluster: Cluster, name: str) -> None:
    """Create a claim of this test's class."""
    spec = {
        "storageClassName": cluster.namespace,
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    await cluster.client.create(PERSISTENT_VOLUME_CLAIM, {"metadata": {"name": name}, "spec": spec}, cluster.namespace)


def mounting(claim: str) -> JSON:
    """Return the part of a pod that mounts a claim."""
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]}


async def a_volume(cluster: Cluster, name: str, *nodes: str) -> None:
    """Create a volume that some nodes reach."""
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": nodes}
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": cluster.namespace,
        "local": {"path": "/data"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
    }
    await cluster.client.create(PERSISTENT_VOLUME, {"metadata": {"name": name}, "spec": spec})
    await cluster.client.patch(PERSISTENT_VOLUME, name, {"status": {"phase": "Available"}}, subresource="status")


async def bind_claim(cluster: Cluster, claim: str, volume: str) -> None:
    """Do what the volume controller does once claim and volume have found each other."""
    done = {"pv.kubernetes.io/bind-completed": "yes"}
    patch = {"metadata": {"annotations": done}, "spec": {"volumeName": volume}}
    await cluster.client.patch(PERSISTENT_VOLUME_CLAIM, claim, patch, cluster.namespace)
    bound = {"status": {"phase": "Bound"}}
    await cluster.client.patch(PERSISTENT_VOLUME_CLAIM, claim, bound, cluster.namespace, subresource="status")


async def selected(cluster: Cluster, claim: str) -> str:
    """Return the node that was selected for a claim."""
    found = await cluster.client.get(PERSISTENT_VOLUME_CLAIM, claim, cluster.namespace)
    return str(found["metadata"].get("annotations", {}).get(SELECTED_NODE, ""))


async def node_of(cluster: Cluster, pod: str) -> str:
    return (await cluster.client.get(POD, pod, cluster.namespace, type=Pod)).spec.node_name


async def test_a_pod_is_bound_once_its_volume_was_made_on_its_node(cluster: Cluster) -> None:
    """The claim is told the node, the pod waits for the volume, and is then bound there."""
    node = await a_node(cluster, "n1")
    await a_class(cluster, "csi.example.com")
    await a_claim(cluster, "data")
    await a_pod(cluster, "p", **mounting("data"))
    async with scheduling(cluster):

        async def is_selected() -> bool:
            return await selected(cluster, "data") == node

        await eventually(cluster, is_selected)
        assert await node_of(cluster, "p") == "", "a pod whose volume is not there yet must not be bound"
        await a_volume(cluster, f"{cluster.namespace}-made", node)
        await bind_claim(cluster, "data", f"{cluster.namespace}-made")

        async def is_bound() -> bool:
            return await node_of(cluster, "p") == node

        await eventually(cluster, is_bound)
        said = {event["reason"] for event in (await cluster.client.list(EVENT, cluster.namespace)).items}
        assert "FailedBinding" not in said, "the bind goes on when its claim is bound, not when it has waited too long"


async def test_a_volume_that_exists_is_given_to_the_claim(cluster: Cluster) -> None:
    """A class that makes no volumes has its existing ones reserved for the claims of placed pods."""
    node = await a_node(cluster, "n1")
    await a_class(cluster, "kubernetes.io/no-provisioner")
    volume = f"{cluster.namespace}-local"
    await a_volume(cluster, volume, node)
    await a_claim(cluster, "data")
    await a_pod(cluster, "p", **mounting("data"))
    async with scheduling(cluster):

        async def is_given() -> bool:
            found = await cluster.client.get(PERSISTENT_VOLUME, volume)
            return bool(found["spec"].get("claimRef", {}).get("name") == "data")

        await eventually(cluster, is_given)
        await bind_claim(cluster, "data", volume)

        async def is_bound() -> bool:
            return await node_of(cluster, "p") == node

        await eventually(cluster, is_bound)


async def test_a_gang_is_released_when_a_volume_is_not_made_in_time(cluster: Cluster) -> None:
    """No pod of the gang is bound, the choice of node is taken back, and the pod says why."""
    if not cluster.embedded:
        pytest.skip("waits for a time-out, which only virtual time makes short")
    node = await a_node(cluster, "n1")
    await a_class(cluster, "csi.example.com")
    await a_claim(cluster, "data")
    policy = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    await cluster.client.create(POD_GROUP, {"metadata": {"name": "g"}, "spec": policy}, cluster.namespace)
    member = {"schedulingGroup": {"podGroupName": "g"}}
    await a_pod(cluster, "with", **member, **mounting("data"))
    await a_pod(cluster, "without", **member)
    async with scheduling(cluster):
        await cluster.runtime.clock.sleep(TIMEOUT - 1)
        assert await selected(cluster, "data") == node
        await cluster.runtime.clock.sleep(1.5)
        assert await selected(cluster, "data") == ""
        assert await node_of(cluster, "with") == await node_of(cluster, "without") == ""
        events = (await cluster.client.list(EVENT, cluster.namespace)).items
        said = [event["message"] for event in events if event["reason"] == "FailedBinding"]
        assert any("data were not bound" in message for message in said)

        await a_volume(cluster, "made", node)
        await bind_claim(cluster, "data", "made")
        await cluster.runtime.clock.sleep(5)
        assert await node_of(cluster, "with") == await node_of(cluster, "without") == node


async def two_that_share(cluster: Cluster) -> tuple[str, str]:
    """Create two nodes with room for one pod each, and a gang of two pods with one claim; return the nodes."""
    nodes = await a_node(cluster, "n1"), await a_node(cluster, "n2")
    await a_class(cluster, "csi.example.com")
    await a_claim(cluster, "data")
    policy = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    await cluster.client.create(POD_GROUP, {"metadata": {"name": "g"}, "spec": policy}, cluster.namespace)
    for name in ("p0", "p1"):
        container = {"resources": {"requests": {"cpu": "6"}}}
        member = {"schedulingGroup": {"podGroupName": "g"}}
        await a_pod(cluster, name, container=container, **member, **mounting("data"))
    return nodes


async def refusals(cluster: Cluster) -> list[str]:
    """Return why binds failed, as events say."""
    events = (await cluster.client.list(EVENT, cluster.namespace)).items
    return [event["message"] for event in events if event["reason"] == "FailedBinding"]


async def test_pods_that_share_a_claim_wait_for_one_volume(cluster: Cluster) -> None:
    """The volume is asked for once, for the node of one of them; both are bound when it is there and they reach it."""
    nodes = await two_that_share(cluster)
    async with scheduling(cluster):

        async def is_selected() -> bool:
            return await selected(cluster, "data") in nodes

        await eventually(cluster, is_selected)
        await a_volume(cluster, f"{cluster.namespace}-made", *nodes)
        await bind_claim(cluster, "data", f"{cluster.namespace}-made")

        async def are_bound() -> bool:
            return {await node_of(cluster, "p0"), await node_of(cluster, "p1")} == {*nodes}

        await eventually(cluster, are_bound)
        assert not await refusals(cluster)


async def test_a_pod_is_not_bound_where_the_volume_made_for_another_is_not_reached(cluster: Cluster) -> None:
    """How far a new volume reaches is known once it is there: then the gang is released, and told which node it is."""
    nodes = await two_that_share(cluster)
    async with scheduling(cluster):

        async def is_selected() -> bool:
            return await selected(cluster, "data") in nodes

        await eventually(cluster, is_selected)
        here = await selected(cluster, "data")
        (there,) = {*nodes} - {here}
        volume = f"{cluster.namespace}-made"
        await a_volume(cluster, volume, here)
        await bind_claim(cluster, "data", volume)

        async def is_refused() -> bool:
            said = await refusals(cluster)
            return any(f"node {there} does not reach {volume}, the volume of data" in message for message in said)

        await eventually(cluster, is_refused)
        assert await node_of(cluster, "p0") == await node_of(cluster, "p1") == ""


async def test_a_scheduler_that_stops_does_not_wait_for_volumes(cluster: Cluster) -> None:
    """Stopping ends the wait and leaves the choice of node, with which the next scheduler goes on."""
    node = await a_node(cluster, "n1")
    await a_class(cluster, "csi.example.com")
    await a_claim(cluster, "data")
    await a_pod(cluster, "p", **mounting("data"))

    async def is_selected() -> bool:
        return await selected(cluster, "data") == node

    async with scheduling(cluster):
        await eventually(cluster, is_selected)
    assert await is_selected()


async def some_devices(cluster: Cluster, node: str, count: int) -> str:
    """Publish devices of a node and a class of them; return the class."""
    driver = "gpu.example.com"
    devices = [{"name": f"gpu-{number}", "attributes": {"index": {"int": number}}} for number in range(count)]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": driver, "pool": pool, "nodeName": node, "devices": devices}
    await cluster.client.create(RESOURCE_SLICE, {"metadata": {"name": f"{node}-gpus"}, "spec": spec})
    name = f"{cluster.namespace}.gpu"
    of_driver = [{"cel": {"expression": f'device.driver == "{driver}"'}}]
    config = [{"opaque": {"driver": driver, "parameters": {"kind": "Settings", "apiVersion": "example.com/v1"}}}]
    spec = {"selectors": of_driver, "config": config}
    await cluster.client.create(DEVICE_CLASS, {"metadata": {"name": name}, "spec": spec})
    return name


async def a_device_claim(cluster: Cluster, name: str, of: str, expression: str) -> None:
    """Create a claim for one device that matches an expression."""
    exactly = {"deviceClassName": of, "selectors": [{"cel": {"expression": expression}}]}
    # Claims for GPUs that pods share are paid for by the queue that they name.
    metadata = {"name": name, "labels": {"kai.scheduler/queue": "default-queue"}}
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    await cluster.client.create(RESOURCE_CLAIM, {"metadata": metadata, "spec": spec}, cluster.namespace)


def using(claim: str) -> JSON:
    """Return the part of a pod that uses a claim."""
    return {
        "resourceClaims": [{"name": "gpu", "resourceClaimName": claim}],
        "container": {"resources": {"claims": [{"name": "gpu"}]}},
    }


async def test_claims_hold_their_devices_before_pods_are_bound(cluster: Cluster) -> None:
    """A claim that two pods share gets the device it selects, with its class's settings, reserved for both."""
    node = await a_node(cluster, "n1")
    of = await some_devices(cluster, node, 2)
    await a_device_claim(cluster, "gpu", of, 'device.attributes["gpu.example.com"].index == 1')
    for name in ("one", "two"):
        await a_pod(cluster, name, **using("gpu"))
    async with scheduling(cluster):

        async def are_bound() -> bool:
            return {await node_of(cluster, name) for name in ("one", "two")} == {node}

        await eventually(cluster, are_bound)
        claim = await cluster.client.get(RESOURCE_CLAIM, "gpu", cluster.namespace)
        (result,) = claim["status"]["allocation"]["devices"]["results"]
        assert {key: result[key] for key in ("request", "driver", "pool", "device")} == {
            "request": "r",
            "driver": "gpu.example.com",
            "pool": node,
            "device": "gpu-1",
        }
        (config,) = claim["status"]["allocation"]["devices"]["config"]
        assert (config["source"], config["requests"]) == ("FromClass", ["r"])
        assert {consumer["name"] for consumer in claim["status"]["reservedFor"]} == {"one", "two"}


async def test_a_device_is_given_out_once(cluster: Cluster) -> None:
    """Of two claims for the same device one waits, also while the first is still being written."""
    node = await a_node(cluster, "n1")
    of = await some_devices(cluster, node, 1)
    for name in ("a", "b"):
        await a_device_claim(cluster, name, of, "true")
        await a_pod(cluster, name, **using(name))
    async with scheduling(cluster):

        async def one_is_bound() -> bool:
            return bool(await node_of(cluster, "a") or await node_of(cluster, "b"))

        await eventually(cluster, one_is_bound)
        await cluster.runtime.clock.sleep(1)
        first, second = ("a", "b") if await node_of(cluster, "a") else ("b", "a")
        assert (await node_of(cluster, first), await node_of(cluster, second)) == (node, "")
        waiting = await cluster.client.get(RESOURCE_CLAIM, second, cluster.namespace)
        assert not waiting.get("status", {}).get("allocation")


async def test_claims_of_a_pod_that_is_not_bound_are_given_back(cluster: Cluster) -> None:
    """When the bind is refused, the reservation ends and the devices are free again."""
    node = await a_node(cluster, "n1")
    of = await some_devices(cluster, node, 1)
    await a_device_claim(cluster, "gpu", of, "true")
    await a_pod(cluster, "p", **using("gpu"))
    refused = 0

    def refusing(method: str, path: str) -> Response | None:
        nonlocal refused
        if not path.endswith("/pods/p/binding"):
            return None
        refused += 1
        return status(403, "Forbidden")

    async with scheduling(cluster, refusing):

        async def is_given_back() -> bool:
            claim = await cluster.client.get(RESOURCE_CLAIM, "gpu", cluster.namespace)
            found = claim.get("status", {})
            return refused > 0 and not found.get("allocation") and not found.get("reservedFor")

        await eventually(cluster, is_given_back)


async def test_a_claim_that_is_replaced_while_its_pod_is_placed_is_no_fault(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watch tells of the deletion between the decision and the bind; the bind goes on with what there is then."""
    node = await a_node(cluster, "n1")
    of = await some_devices(cluster, node, 1)
    await a_device_claim(cluster, "gpu", of, "true")
    await a_pod(cluster, "p", **using("gpu"))
    replaced = await cluster.client.get(RESOURCE_CLAIM, "gpu", cluster.namespace, type=ResourceClaim)
    bind = ClusterEffects.bind

    def deleted_at_once(effects: ClusterEffects, binds: Sequence[Binding], *, decided_at: BookPositions) -> None:
        bind(effects, binds, decided_at=decided_at)
        effects.inventory.claims.delete(replaced)

    monkeypatch.setattr(ClusterEffects, "bind", deleted_at_once)
    async with scheduling(cluster):

        async def is_bound() -> bool:
            return await node_of(cluster, "p") == node

        await eventually(cluster, is_bound)
        events = (await cluster.client.list(EVENT, cluster.namespace)).items
        assert "SchedulerError" not in {event["reason"] for event in events}


async def test_a_restart_gives_back_what_was_prepared_for_pods_that_were_not_bound(cluster: Cluster) -> None:
    """A claim that a predecessor allocated on a node that is closed by now does not keep the pod from another."""
    closed, open_ = await a_node(cluster, "n1"), await a_node(cluster, "n2")
    of = await some_devices(cluster, closed, 1)
    spec = {"driver": "gpu.example.com", "pool": {"name": open_, "generation": 1, "resourceSliceCount": 1}}
    devices = [{"name": "gpu-0", "attributes": {"index": {"int": 0}}}]
    body = {"metadata": {"name": f"{open_}-gpus"}, "spec": {**spec, "nodeName": open_, "devices": devices}}
    await cluster.client.create(RESOURCE_SLICE, body)
    await a_device_claim(cluster, "gpu", of, "true")
    await a_pod(cluster, "p", **using("gpu"))
    pod = await cluster.client.get(POD, "p", cluster.namespace, type=Pod)
    chosen = ClaimAllocation(Key(cluster.namespace, "gpu"), (GivenDevice("r", "gpu.example.com", closed, "gpu-0"),))
    placement = Placement(Key(cluster.namespace, "p"), pod.metadata.uid or "", closed, claims=(chosen,))
    await DeviceClaims(cluster.client).prepare(placement)
    await cluster.client.patch(NODE, closed, {"spec": {"unschedulable": True}})
    async with scheduling(cluster):

        async def is_bound() -> bool:
            return await node_of(cluster, "p") == open_

        await eventually(cluster, is_bound)
        claim = await cluster.client.get(RESOURCE_CLAIM, "gpu", cluster.namespace)
        assert [each["pool"] for each in claim["status"]["allocation"]["devices"]["results"]] == [open_]

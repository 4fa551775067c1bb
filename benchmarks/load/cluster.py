"""Nodes, pods and gangs on an API server, made and removed many at a time."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import TypeVar

from spinney.api.core import EVENT, NAMESPACE, NODE, POD, SERVICE_ACCOUNT
from spinney.api.rbac import CLUSTER_ROLE_BINDING
from spinney.api.struct import JSON
from spinney.api.workload_v1beta1 import POD_GROUP
from spinney.kube.client import Client
from spinney.kube.errors import NotFound, ServerTimeout

T = TypeVar("T")

NAMESPACE_NAME = "bench"
GPU = "nvidia.com/gpu"
NODE_CAPACITY = {"cpu": "64", "memory": "512Gi", "pods": "110", GPU: "8"}

_IN_FLIGHT = 64


async def prepare(client: Client, *, nodes: int, administrator: str, node: Callable[[int], JSON]) -> None:
    """Make the namespace, its service account, the nodes, and an administrator of the named user."""
    await client.create(NAMESPACE, {"metadata": {"name": NAMESPACE_NAME}})
    await client.create(SERVICE_ACCOUNT, {"metadata": {"name": "default", "namespace": NAMESPACE_NAME}})
    group = CLUSTER_ROLE_BINDING.group
    await client.create(
        CLUSTER_ROLE_BINDING,
        {
            "metadata": {"name": f"bench-{administrator}"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"apiGroup": group, "kind": "User", "name": administrator}],
        },
    )
    await for_each(range(nodes), lambda number: client.create(NODE, node(number)))


def a_node(number: int) -> JSON:
    """Return a ready node with eight GPUs; nobody plays its kubelet."""
    return {
        "metadata": {"name": f"node-{number:05d}", "labels": {"kubernetes.io/hostname": f"node-{number:05d}"}},
        "status": {
            "capacity": NODE_CAPACITY,
            "allocatable": NODE_CAPACITY,
            "conditions": [{"type": "Ready", "status": "True", "reason": "Bench"}],
        },
    }


async def create_pods(client: Client, count: int, *, scheduler: str) -> None:
    """Create pods that belong to nothing."""
    requests = {"cpu": "100m", "memory": "500Mi"}
    pods = [a_pod(f"plain-{n:05d}", scheduler, {"requests": requests}) for n in range(count)]
    await for_each(pods, lambda pod: client.create(POD, pod))


async def create_gangs(client: Client, count: int, *, size: int, scheduler: str, gpus: int = 1) -> None:
    """Create native gangs of pods of so many GPUs: first all groups, then all pods."""
    names = [f"gang-{n:05d}" for n in range(count)]
    groups = [a_group(name, size) for name in names]
    await for_each(groups, lambda group: client.create(POD_GROUP, group))
    resources = {"requests": {"cpu": "1", "memory": "4Gi"}, "limits": {GPU: str(gpus)}}
    pods = [a_pod(f"{name}-{n:03d}", scheduler, resources, gang=name) for name in names for n in range(size)]
    await for_each(pods, lambda pod: client.create(POD, pod))


def a_group(name: str, size: int) -> JSON:
    """Return a PodGroup that wants all its pods."""
    return {
        "metadata": {"name": name, "namespace": NAMESPACE_NAME},
        "spec": {"schedulingPolicy": {"gang": {"minCount": size}}},
    }


def a_pod(name: str, scheduler: str, resources: JSON, *, gang: str = "") -> JSON:
    """Return a pod with one container."""
    spec: JSON = {
        "schedulerName": scheduler,
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "containers": [{"name": "main", "image": "pause", "resources": resources}],
    }
    if gang:
        spec["schedulingGroup"] = {"podGroupName": gang}
    return {"metadata": {"name": name, "namespace": NAMESPACE_NAME}, "spec": spec}


async def clear(client: Client) -> None:
    """Remove every pod, group and event of the namespace."""
    await clear_pods(client)
    names = [group["metadata"]["name"] for group in (await client.list(POD_GROUP, NAMESPACE_NAME)).items]
    await for_each(names, lambda name: _remove_group(client, name))


async def clear_pods(client: Client) -> None:
    """Remove every pod and event of the namespace, in as many requests as the server needs for them."""
    for resource in (POD, EVENT):
        there = True
        while there:
            with suppress(ServerTimeout):
                await client.delete_collection(resource, NAMESPACE_NAME, grace_period_seconds=0)
            there = bool((await client.list(resource, NAMESPACE_NAME, limit=1)).items)


async def _remove_group(client: Client, name: str) -> None:
    # The controller that would take the finalizer off does not run here.
    try:
        await client.patch(POD_GROUP, name, {"metadata": {"finalizers": None}}, NAMESPACE_NAME)
        await client.delete(POD_GROUP, name, NAMESPACE_NAME)
    except NotFound:
        return


async def count_events(client: Client) -> int:
    """Return how many events the namespace has."""
    response = await client.raw("GET", EVENT.path(NAMESPACE_NAME), query={"limit": "1"})
    listed = json.loads(response.body)
    return len(listed["items"]) + int(listed["metadata"].get("remainingItemCount", 0))


async def for_each(items: Iterable[T], act: Callable[[T], Awaitable[object]]) -> None:
    """Do something with every item, with some of them at the same time."""
    waiting = iter(items)

    async def take() -> None:
        for item in waiting:
            await act(item)

    await asyncio.gather(*(take() for _ in range(_IN_FLIGHT)))

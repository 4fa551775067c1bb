"""The gang scheduling API of each Kubernetes minor, on its real API server: it is served, and pods keep its field."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from spinney.api.core import NAMESPACE, POD, SERVICE_ACCOUNT
from spinney.api.struct import JSON
from spinney.kube.client import Client
from spinney.nodes import ClusterSpec, Fleet
from spinney.runtime import Runtime
from spinney.testing.controlplane import MINORS, ControlPlane

GANG_OF_TWO: dict[str, JSON] = {
    "1.35": {"spec": {"podGroups": [{"name": "workers", "policy": {"gang": {"minCount": 2}}}]}},
    "1.36": {"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}},
    "1.37": {"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}},
}
MEMBERSHIP: dict[str, JSON] = {
    "1.35": {"workloadRef": {"name": "gang", "podGroup": "workers"}},
    "1.36": {"schedulingGroup": {"podGroupName": "gang"}},
    "1.37": {"schedulingGroup": {"podGroupName": "gang"}},
}


@pytest.fixture(params=MINORS)
def plane(request: pytest.FixtureRequest) -> ControlPlane:
    """The control plane of each minor in turn."""
    fixture = {"1.35": "controlplane_135", "1.36": "controlplane_136", "1.37": "controlplane"}[request.param]
    found: ControlPlane = request.getfixturevalue(fixture)
    return found


@asynccontextmanager
async def a_client(plane: ControlPlane) -> AsyncIterator[Client]:
    """Connect as an administrator."""
    runtime = Runtime.system()
    client = plane.connect(runtime)
    try:
        yield client
    finally:
        await client.transport.close()
        runtime.executor.close()


@pytest.mark.real
async def test_the_gang_api_of_the_minor_is_served(plane: ControlPlane) -> None:
    """A gang of two is accepted in the form of that minor."""
    async with a_client(plane) as client:
        gang = {"metadata": {"name": "gang"}, **GANG_OF_TWO[plane.minor]}
        stored = await client.create(plane.gangs.group, gang, "default", dry_run=True)
        assert stored["apiVersion"] == plane.gangs.group.api_version
        assert "minCount" in str(stored["spec"])


@pytest.mark.real
async def test_a_pod_keeps_its_membership(plane: ControlPlane) -> None:
    """The field that names a pod's gang survives creation: it would be dropped silently were the gate off."""
    async with a_client(plane) as client:
        membership = MEMBERSHIP[plane.minor]
        pod = {
            "metadata": {"name": "member"},
            "spec": {"containers": [{"name": "main", "image": "pause"}], **membership},
        }
        stored = await client.create(POD, pod, "default", dry_run=True)
        assert stored["spec"][plane.gangs.pod_field] == membership[plane.gangs.pod_field]


@pytest.mark.real
async def test_the_server_is_of_that_minor(plane: ControlPlane) -> None:
    """The API server says that it is of the minor that was asked for."""
    async with a_client(plane) as client:
        answer = await client.raw("GET", "/version")
        assert f'"gitVersion": "v{plane.minor}.' in answer.body.decode()


@pytest.mark.real
async def test_the_stock_scheduler_places_a_gang_whole_or_not_at_all(plane: ControlPlane) -> None:
    """A gang of two runs on two simulated nodes; of a gang whose third pod has no room, not one pod is bound."""
    nodes = [{"name": f"gang-{plane.minor}-{{index}}", "count": 2, "capacity": {"cpu": 8}}]
    async with a_client(plane) as client, a_namespace(client) as namespace:
        fleet = Fleet(client, ClusterSpec.from_document({"nodes": nodes}), runtime=client.runtime)
        async with fleet.running():
            with plane.scheduler():
                await create_gang(client, plane, namespace, "fits", of=2, cpu=5)
                await until_condition(client, namespace, "fits", {"type": "Ready", "status": "True"}, of=2)
                await create_gang(client, plane, namespace, "too-large", of=3, cpu=3)
                refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
                await until_condition(client, namespace, "too-large", refused, of=1)
                bound = await client.list(POD, namespace, field_selector="spec.nodeName!=")
                assert sorted(pod["metadata"]["name"] for pod in bound.items) == ["fits-0", "fits-1"]
            for name in fleet.names:
                await fleet.remove(name)


@asynccontextmanager
async def a_namespace(client: Client) -> AsyncIterator[str]:
    """Make a namespace in which pods can be created, for the time of a block."""
    created = await client.create(NAMESPACE, {"metadata": {"generateName": "gang-"}})
    name: str = created["metadata"]["name"]
    async for event in client.watch(SERVICE_ACCOUNT, name, field_selector="metadata.name=default"):
        if event.type == "ADDED":
            break
    yield name
    await client.delete(NAMESPACE, name)


async def create_gang(client: Client, plane: ControlPlane, namespace: str, name: str, *, of: int, cpu: int) -> None:
    """Create a gang in the form of the minor, and as many pods as it needs."""
    policy = {"gang": {"minCount": of}}
    spec: JSON = {"schedulingPolicy": policy}
    membership: JSON = {"schedulingGroup": {"podGroupName": name}}
    if plane.minor == "1.35":
        spec = {"podGroups": [{"name": "workers", "policy": policy}]}
        membership = {"workloadRef": {"name": name, "podGroup": "workers"}}
    await client.create(plane.gangs.group, {"metadata": {"name": name}, "spec": spec}, namespace)
    for number in range(of):
        container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": str(cpu)}}}
        metadata = {"name": f"{name}-{number}", "labels": {"gang": name}}
        pod = {"metadata": metadata, "spec": {"containers": [container], **membership}}
        await client.create(POD, pod, namespace)


async def until_condition(client: Client, namespace: str, gang: str, condition: JSON, *, of: int) -> None:
    """Follow the pods of a gang until so many of them have a condition."""
    having: set[str] = set()
    async for event in client.watch(POD, namespace, label_selector=f"gang={gang}"):
        found = event.object["status"].get("conditions") or []
        if any(condition.items() <= each.items() for each in found):
            having.add(event.object["metadata"]["name"])
        if len(having) >= of:
            return

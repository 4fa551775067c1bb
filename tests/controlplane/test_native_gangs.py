"""The gang scheduling API of each Kubernetes minor, on its real API server: it is served, and pods keep its field."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from spinney.api.core import POD
from spinney.api.struct import JSON
from spinney.kube.client import Client
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

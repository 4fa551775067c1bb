"""What is said to be served, and by which fields it can be selected: the same as kube-apiserver says."""

import json
from typing import Any

import pytest

from spinney.kube.transport import Transport
from spinney.runtime import Runtime
from spinney.server import ApiServer
from spinney.server.kinds.builtin import builtin_kinds
from spinney.sim.transport import InProcessTransport
from spinney.testing.controlplane import ControlPlane

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.labels",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "spec.unschedulable",
    "spec.clusterIP",
    "spec.type",
    "spec.driver",
    "spec.pool.name",
    "status.phase",
    "status.podIP",
    "status.podIPs",
    "status.nominatedNodeName",
    "status.successful",
    "status.replicas",
    "type",
    "reason",
    "source",
    "reportingComponent",
    "reportingController",
    "regarding.kind",
    "regarding.name",
    "involvedObject.kind",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.fieldPath",
)


async def _read(transport: Transport, path: str) -> Any:
    return json.loads((await transport.request("GET", path)).body)


async def test_resources_are_described_alike(controlplane: ControlPlane) -> None:
    """Every resource that the embedded server has is described as a real server describes it."""
    runtime = Runtime.system()
    real, ours = controlplane.connect(runtime).transport, InProcessTransport(ApiServer(runtime))
    groups = (await _read(ours, "/apis"))["groups"]
    paths = ["/api/v1", *(f"/apis/{each['groupVersion']}" for group in groups for each in group["versions"])]
    compared = 0
    for path in paths:
        expected = {each["name"]: each for each in (await _read(real, path))["resources"]}
        for found in (await _read(ours, path))["resources"]:
            assert _described(found) == _described(expected[found["name"]]), path
            compared += 1
    assert compared > 90
    await real.close()
    runtime.executor.close()


def _described(resource: Any) -> Any:
    """Return a description whose lists are in order; the hash is about how objects are stored."""
    shown = {name: value for name, value in resource.items() if name != "storageVersionHash"}
    return {name: sorted(value) if isinstance(value, list) else value for name, value in shown.items()}


async def test_the_same_fields_select(controlplane: ControlPlane) -> None:
    """A field selector is understood, or refused, by both servers, for every kind."""
    runtime = Runtime.system()
    real, ours = controlplane.connect(runtime).transport, InProcessTransport(ApiServer(runtime))
    differing = []
    for kind in builtin_kinds(("v1beta1", "v1alpha3")):
        for field in _FIELDS if "list" in kind.verbs else ():
            query = {"fieldSelector": f"{field}=x", "limit": "1"}
            statuses = [(await each.request("GET", kind.resource.path(), query=query)).status for each in (real, ours)]
            if statuses[0] != statuses[1]:
                differing.append(f"{kind.resource} {field}: {statuses}")
    assert not differing
    await real.close()
    runtime.executor.close()

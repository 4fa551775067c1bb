"""What is said to be served, and by which fields it can be selected: the same as kube-apiserver says."""

import json
from typing import Any

import pytest

from spinney.kube.transport import Request, Transport
from spinney.runtime import Runtime
from spinney.server import ApiServer
from spinney.server.builtin.table import builtin_kinds
from spinney.sim.embedded.transport import InProcessTransport
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
    return json.loads((await transport.request(Request("GET", path))).body)


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


_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@pytest.mark.parametrize("path", ["/api", "/apis"])
async def test_aggregated_discovery_is_the_same(controlplane: ControlPlane, path: str) -> None:
    """Groups stand in the same order, and every version and resource is told field by field as a real server does."""
    runtime = Runtime.system()
    real, ours = controlplane.connect(runtime).transport, InProcessTransport(ApiServer(runtime))
    answers = [await each.request(Request("GET", path, headers={"accept": _AGGREGATED})) for each in (real, ours)]
    expected, found = (json.loads(answer.body) for answer in answers)
    for name in ("content-type", "vary", "cache-control"):
        assert answers[0].headers.get(name) == answers[1].headers.get(name)
    groups = {_name(group): group for group in expected["items"]}
    assert [_name(group) for group in found["items"]] == [
        name for name in groups if name in {_name(group) for group in found["items"]}
    ]
    for group in found["items"]:
        assert group["metadata"] == groups[_name(group)]["metadata"]
        versions = {each["version"]: each for each in groups[_name(group)]["versions"]}
        for version in group["versions"]:
            there = {each["resource"]: each for each in versions[version["version"]].pop("resources")}
            for resource in version.pop("resources"):
                assert _told(resource) == _told(there[resource["resource"]])
            assert version == versions[version["version"]]
    await real.close()
    runtime.executor.close()


def _name(group: Any) -> str:
    name: str = group["metadata"].get("name", "")
    return name


def _told(resource: Any) -> Any:
    """Return a resource whose lists are in order."""
    below = sorted(resource.get("subresources") or (), key=lambda each: str(each["subresource"]))
    below = [each for each in below if (resource["resource"], each["subresource"]) != ("csinodes", "status")]
    return {**resource, "verbs": sorted(resource["verbs"]), "subresources": below}


async def test_openapi_v2_names_the_same_types_and_fields(controlplane: ControlPlane) -> None:
    """Every definition is one that a real server has, with the same fields of the same types."""
    runtime = Runtime.system()
    real, ours = controlplane.connect(runtime).transport, InProcessTransport(ApiServer(runtime))
    expected, found = await _read(real, "/openapi/v2"), await _read(ours, "/openapi/v2")
    types = {name: _typed(expected, schema) for name, schema in expected["definitions"].items()}
    assert len(found["definitions"]) > 450
    for name, schema in found["definitions"].items():
        assert _typed(found, schema) == types[name], name
    assert [path for path in found["paths"] if path not in expected["paths"]] == []
    await real.close()
    runtime.executor.close()


_BOXES = ("JSON", "JSONSchemaPropsOr", "MicroTime", "Quantity", "RawExtension", "Time", "FieldsV1", "IntOrString")


def _typed(document: Any, schema: Any) -> Any:
    """Return the types of the fields; what only wraps a simple type counts as that, and what holds anything as such."""

    def kind(value: Any) -> str:
        reference = value.get("$ref", "").rpartition(".")[2]
        if reference.startswith(_BOXES):
            target = document["definitions"][value["$ref"].removeprefix("#/definitions/")]
            return str(target.get("type", "object"))
        inner = value.get("items") or value.get("additionalProperties") or {}
        below = f" of {kind(inner)}" if inner else ""
        return str(reference or value.get("type", "object")) + below

    return {name: kind(value) for name, value in (schema.get("properties") or {}).items()}


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
            statuses = [
                (await each.request(Request("GET", kind.resource.path(), query=query))).status for each in (real, ours)
            ]
            if statuses[0] != statuses[1]:
                differing.append(f"{kind.resource} {field}: {statuses}")
    assert not differing
    await real.close()
    runtime.executor.close()

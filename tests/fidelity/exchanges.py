"""Requests that are sent to the embedded server and to a real one, to compare the answers.

They form one story per kind: objects are created, refused, changed, conflicted over and deleted. ``{ns}`` stands for
the namespace of the run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spinney.api.struct import JSON
from tests.server.api import APPLY, JSON_PATCH, MERGE, STRATEGIC

_CORE = "/api/v1/namespaces/{ns}"
MAPS, PODS, EVENTS = f"{_CORE}/configmaps", f"{_CORE}/pods", f"{_CORE}/events"
GANGS = "/apis/scheduling.k8s.io/v1beta1/namespaces/{ns}"
GROUPS, WORKLOADS = f"{GANGS}/podgroups", f"{GANGS}/workloads"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
BUDGETS = "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GEARS = "/apis/parity.example.com/v1/namespaces/{ns}/gears"


@dataclass(frozen=True)
class Exchange:
    """One request."""

    method: str
    path: str
    body: Any = None
    content_type: str = "application/json"
    query: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.method} {self.path} {self.query or ''} {self.content_type.rpartition('/')[2]} {self.body}"


def _post(path: str, body: Any, **query: str) -> Exchange:
    return Exchange("POST", path, body, query=query)


def _put(path: str, body: Any) -> Exchange:
    return Exchange("PUT", path, body)


def _get(path: str, **query: str) -> Exchange:
    return Exchange("GET", path, query=query)


def _delete(path: str, body: Any = None, **query: str) -> Exchange:
    return Exchange("DELETE", path, body, query=query)


def _merge(path: str, body: Any) -> Exchange:
    return Exchange("PATCH", path, body, MERGE)


def _strategic(path: str, body: Any) -> Exchange:
    return Exchange("PATCH", path, body, STRATEGIC)


def _json(path: str, *operations: JSON) -> Exchange:
    return Exchange("PATCH", path, list(operations), JSON_PATCH)


def _apply(path: str, api_version: str, kind: str, *, manager: str = "", force: str = "false", **body: Any) -> Exchange:
    name = path.rpartition("/")[2]
    obj = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **body}
    query = {"fieldManager": manager, "force": force} if manager else {}
    return Exchange("PATCH", path, obj, APPLY, query)


def _map(name: str, **metadata: Any) -> JSON:
    return {"metadata": {"name": name, **metadata}, "data": {"k": "v"}}


def _pod(name: str, **spec: Any) -> JSON:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i:1"}], **spec}}


def _binding(pod: str, **metadata: Any) -> JSON:
    return {"metadata": {"name": pod, **metadata}, "target": {"kind": "Node", "name": "n"}}


_WRITES = [
    _post(MAPS, _map("a")),
    _post(MAPS, _map("a")),
    _post(MAPS, _map("A_B")),
    _post(MAPS, {"metadata": {}}),
    _post(MAPS, _map("b", namespace="other")),
    _post(MAPS, {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "b"}}),
    _post(MAPS, {"kind": "ConfigMap", "apiVersion": "v2", "metadata": {"name": "b"}}),
    _post(MAPS, _map("b", labels={"a b": "c"})),
    _post(MAPS, _map("b", labels={"a": "c d"})),
    _post(MAPS, _map("b", ownerReferences=[{"name": "x"}])),
    _put(f"{MAPS}/a", _map("a", resourceVersion="1")),
    _put(f"{MAPS}/a", _map("z")),
    _put(f"{MAPS}/nope", _map("nope")),
    _put(f"{MAPS}/a", _map("a", uid="bad")),
    _merge(f"{MAPS}/a", {"data": {"k": "x"}}),
    _merge(f"{MAPS}/a", {"metadata": {"name": "q"}}),
    _merge(f"{MAPS}/nope", {"data": {}}),
    _json(f"{MAPS}/a", {"op": "test", "path": "/data/k", "value": "no"}),
    _json(f"{MAPS}/a", {"op": "remove", "path": "/data/nowhere"}),
    _json(f"{MAPS}/a", {"op": "replace", "path": "/data/k", "value": "y"}),
    Exchange("PATCH", f"{MAPS}/a", {"data": {}}),
    _delete(f"{MAPS}/a", {"propagationPolicy": "Weird"}),
    _delete(f"{MAPS}/a", dryRun="All"),
    _delete(f"{MAPS}/a"),
    _delete(f"{MAPS}/a"),
    _post(LEASES, {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15}}),
    _put(f"{LEASES}/l", {"metadata": {"name": "l"}, "spec": {"holderIdentity": "b"}}),
    _post(BUDGETS, {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}}),
    _delete("/api/v1/namespaces/default"),
    _delete("/api/v1/namespaces/nope"),
    _post(CLASSES, {"metadata": {"name": "system-x"}, "value": 5}),
    _post(CLASSES, {"metadata": {"name": "too-high"}, "value": 1_000_000_001}),
    _post(CLASSES, {"metadata": {"name": "hi-{ns}"}, "value": 1000}),
    _merge(f"{CLASSES}/hi-{{ns}}", {"value": 1001}),
    _delete(f"{CLASSES}/hi-{{ns}}"),
]
_APPLIES = [
    _apply(f"{MAPS}/s", "v1", "ConfigMap", data={"k": "1", "j": "2"}),
    Exchange("PATCH", f"{MAPS}/s", {"kind": "ConfigMap"}, APPLY, {"fieldManager": "m1"}),
    _apply(f"{MAPS}/s", "v1", "ConfigMap", manager="m1", data={"k": "1", "j": "2"}),
    _apply(f"{MAPS}/s", "v1", "ConfigMap", manager="m2", data={"k": "2"}),
    _apply(f"{MAPS}/s", "v1", "ConfigMap", manager="m2", force="true", data={"k": "2"}),
    _merge(f"{MAPS}/s", {"data": {"x": "1"}}),
    _apply(f"{MAPS}/s", "v1", "ConfigMap", manager="m1"),
    _get(f"{MAPS}/s"),
]
_LISTS = [
    _get(f"{MAPS}/nope"),
    _get(MAPS, fieldSelector="foo=bar"),
    _get(MAPS, labelSelector="a=b=c"),
    _get(MAPS, resourceVersionMatch="Exact"),
    _get(MAPS, resourceVersion="0", resourceVersionMatch="Exact"),
    _get(MAPS, **{"continue": "garbage"}),
    _get(MAPS, watch="true", sendInitialEvents="true"),
    _get(MAPS, watch="true", resourceVersionMatch="NotOlderThan"),
    _get("/api/v1/nothing"),
    _post("/api/v1/nodes/x", {}),
]
_READY = [{"type": "Ready", "status": "True"}]
_PODS = [
    _post(PODS, _pod("p")),
    _get(f"{PODS}/p"),
    _post(PODS, {"metadata": {"name": "q"}}),
    _post(PODS, {"metadata": {"name": "q"}, "spec": {"containers": []}}),
    _post(PODS, {"metadata": {"name": "q"}, "spec": {"containers": [{"name": "C"}]}}),
    _post(PODS, {"metadata": {"name": "q"}, "spec": {"containers": [{"name": "a", "image": "x"}] * 2}}),
    _post(PODS, _pod("q", restartPolicy="Bad")),
    _post(PODS, _pod("q", priorityClassName="nope")),
    _post(PODS, _pod("q", priority=5)),
    _post(PODS, _pod("q", schedulingGates=[{"name": "a"}, {"name": "a"}])),
    _post(PODS, _pod("q", schedulingGates=[{"name": "a"}], nodeName="n")),
    _post(PODS, _pod("g", schedulingGates=[{"name": "example.com/a"}])),
    _post(f"{PODS}/g/binding", _binding("g")),
    _post(f"{PODS}/g/binding", _binding("")),
    _merge(f"{PODS}/g", {"spec": {"schedulingGates": [{"name": "example.com/b"}]}}),
    _merge(f"{PODS}/g", {"spec": {"nodeSelector": {"a": "b"}}}),
    _merge(f"{PODS}/g", {"spec": {"schedulingGates": []}}),
    _post(f"{PODS}/g/binding", _binding("g", uid="bad")),
    _post(f"{PODS}/g/binding", _binding("g", annotations={"a": "b"})),
    _post(f"{PODS}/g/binding", _binding("g")),
    _get(f"{PODS}/g"),
    _merge(f"{PODS}/p", {"spec": {"nodeName": "x"}}),
    _merge(f"{PODS}/p", {"spec": {"priority": 3}}),
    _merge(f"{PODS}/p", {"spec": {"activeDeadlineSeconds": 5}}),
    _strategic(f"{PODS}/p", {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}),
    _merge(f"{PODS}/p", {"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}}),
    _strategic(f"{PODS}/p/status", {"status": {"phase": "Running", "conditions": _READY}}),
    _strategic(f"{PODS}/p/status", {"status": {"conditions": [{"type": "X", "status": "True"}]}}),
    _strategic(f"{PODS}/p/status", {"status": {"conditions": _READY}}),
    _strategic(f"{PODS}/p/status", {"status": {"conditions": [{"type": "Y", "status": "True"}, *_READY]}}),
    _strategic(f"{PODS}/p/status", {"status": {"conditions": [{"type": "X", "$patch": "delete"}]}}),
    _strategic(f"{PODS}/p", {"metadata": {"finalizers": ["example.com/a", "example.com/b"]}}),
    _strategic(f"{PODS}/p", {"metadata": {"finalizers": ["example.com/c", "example.com/a"]}}),
    _strategic(f"{PODS}/p", {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}}),
    _merge(f"{PODS}/p", {"metadata": {"finalizers": None}}),
    _get(PODS, fieldSelector="spec.priority=0"),
    _delete(f"{PODS}/g"),
    _post(f"{PODS}/g/binding", _binding("g")),
    _delete(f"{PODS}/g", {"gracePeriodSeconds": 0}),
    _delete(f"{PODS}/p"),
]
_GANGS = [
    _post(PODS, _pod("m", schedulingGroup={"podGroupName": "x"}, schedulingGates=[{"name": "example.com/a"}])),
    _merge(f"{PODS}/m", {"spec": {"schedulingGroup": {"podGroupName": "y"}}}),
    _post(GROUPS, {"metadata": {"name": "x"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}),
    _post(GROUPS, {"metadata": {"name": "y"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 0}}}}),
    _post(GROUPS, {"metadata": {"name": "y"}, "spec": {"schedulingPolicy": {}}}),
    _post(GROUPS, {"metadata": {"name": "y"}, "spec": {}}),
    _post(GROUPS, {"metadata": {"name": "y"}, "spec": {"schedulingPolicy": {"basic": {}, "gang": {"minCount": 1}}}}),
    _merge(f"{GROUPS}/x", {"spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}}),
    _merge(f"{GROUPS}/x", {"spec": {"schedulingPolicy": {"gang": None, "basic": {}}}}),
    _merge(f"{GROUPS}/x", {"spec": {"priorityClassName": "system-node-critical"}}),
    _post(
        WORKLOADS,
        {
            "metadata": {"name": "w"},
            "spec": {"podGroupTemplates": [{"name": "a", "schedulingPolicy": {"gang": {"minCount": 2}}}]},
        },
    ),
    _post(WORKLOADS, {"metadata": {"name": "v"}, "spec": {"podGroupTemplates": []}}),
    _post(
        WORKLOADS,
        {
            "metadata": {"name": "v"},
            "spec": {"podGroupTemplates": [{"name": "a", "schedulingPolicy": {"basic": {}}}] * 2},
        },
    ),
]
_DEFINITION = {
    "metadata": {"name": "gears.parity.example.com"},
    "spec": {
        "group": "parity.example.com",
        "scope": "Namespaced",
        "names": {"plural": "gears", "kind": "Gear"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                },
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["min"],
                                "x-kubernetes-validations": [
                                    {"rule": "self.min <= self.replicas", "message": "min above replicas"}
                                ],
                                "properties": {
                                    "min": {"type": "integer", "minimum": 1},
                                    "replicas": {"type": "integer", "default": 2},
                                    "mode": {"type": "string", "enum": ["a", "b"]},
                                    "name": {"type": "string", "maxLength": 5},
                                    "port": {"x-kubernetes-int-or-string": True},
                                    "note": {"type": "string", "nullable": True},
                                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                                    "tags": {
                                        "type": "array",
                                        "maxItems": 3,
                                        "x-kubernetes-list-type": "set",
                                        "items": {"type": "string"},
                                    },
                                    "parts": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["name"],
                                        "items": {
                                            "type": "object",
                                            "required": ["name"],
                                            "properties": {"name": {"type": "string"}, "v": {"type": "integer"}},
                                        },
                                    },
                                },
                            },
                            "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
                        },
                    }
                },
            }
        ],
    },
}


def _gear(gear: str, **spec: Any) -> JSON:
    return {"apiVersion": "parity.example.com/v1", "kind": "Gear", "metadata": {"name": gear}, "spec": spec}


_CUSTOM = [
    _post(GEARS, {**_gear("f", min=1, junk=1, free={"a": 1}, note=None, port="x"), "status": {"replicas": 1}}),
    _post(GEARS, _gear("g", min=1, junk=1), fieldValidation="Strict"),
    _post(GEARS, _gear("g", min=3)),
    _post(GEARS, _gear("g", min=0, mode="z", name="abcdefg", port=1.5, tags=["a", "b", "c", "d"])),
    _post(GEARS, _gear("g", min="1")),
    _post(GEARS, _gear("g", min=1, parts=[{"name": "a"}, {"name": "a"}])),
    _post(GEARS, _gear("g", min=1, parts=[{"v": 1}])),
    _post(GEARS, _gear("g")),
    _post(GEARS, {"metadata": {"name": "g"}, "spec": {}}),
    _merge(f"{GEARS}/f", {"spec": {"min": 2}}),
    _merge(f"{GEARS}/f", {"spec": {"min": 9}}),
    _merge(f"{GEARS}/f/status", {"status": {"replicas": 4}, "spec": {"min": 1}}),
    _strategic(f"{GEARS}/f", {"spec": {"min": 2}}),
    _put(f"{GEARS}/f", _gear("f", min=2)),
    _get(f"{GEARS}/f/scale"),
    _merge(f"{GEARS}/f/scale", {"spec": {"replicas": 5}}),
    _apply(f"{GEARS}/f", "parity.example.com/v1", "Gear", manager="m1", spec={"min": 2, "parts": [{"name": "a"}]}),
    _apply(f"{GEARS}/f", "parity.example.com/v1", "Gear", manager="m2", spec={"parts": [{"name": "b"}]}),
    _apply(f"{GEARS}/f", "parity.example.com/v1", "Gear", manager="m1", spec={"min": 2}),
    _delete(f"{GEARS}/f"),
]

DEFINITION = _post(DEFINITIONS, _DEFINITION)
STORIES: Mapping[str, list[Exchange]] = {
    "writes": _WRITES,
    "applies": _APPLIES,
    "lists": _LISTS,
    "pods": _PODS,
    "gangs": _GANGS,
    "custom resources": _CUSTOM,
}

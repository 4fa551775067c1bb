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
    known: str = ""  # the difference that the answers are known to show
    accept: str = ""
    ignoring: tuple[str, ...] = ()  # what controllers have written, which only the real server has

    def __str__(self) -> str:
        return f"{self.method} {self.path} {self.query or ''} {self.content_type.rpartition('/')[2]} {self.body}"


def posting(path: str, body: Any, *, known: str = "", **query: str) -> Exchange:
    """Create, or call a subresource."""
    return Exchange("POST", path, body, query=query, known=known)


def putting(path: str, body: Any, **query: str) -> Exchange:
    return Exchange("PUT", path, body, query=query)


def getting(path: str, *, known: str = "", **query: str) -> Exchange:
    """Read or list."""
    return Exchange("GET", path, query=query, known=known)


def tabulating(path: str, **query: str) -> Exchange:
    """Read or list as a table."""
    return Exchange("GET", path, query=query, accept="application/json;as=Table;v=v1;g=meta.k8s.io")


def deleting(path: str, body: Any = None, **query: str) -> Exchange:
    return Exchange("DELETE", path, body, query=query)


def merging(path: str, body: Any, **query: str) -> Exchange:
    return Exchange("PATCH", path, body, MERGE, query)


def strategically(path: str, body: Any, **query: str) -> Exchange:
    """Patch by merging lists by their keys."""
    return Exchange("PATCH", path, body, STRATEGIC, query)


def json_patching(path: str, *operations: JSON, **query: str) -> Exchange:
    return Exchange("PATCH", path, list(operations), JSON_PATCH, query)


def applying(
    path: str, api_version: str, kind: str, *, manager: str = "", force: str = "false", known: str = "", **body: Any
) -> Exchange:
    """Apply on the server's side."""
    name = path.rpartition("/")[2]
    obj = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **body}
    query = {"fieldManager": manager, "force": force} if manager else {}
    return Exchange("PATCH", path, obj, APPLY, query, known)


def _map(name: str, **metadata: Any) -> JSON:
    return {"metadata": {"name": name, **metadata}, "data": {"k": "v"}}


def _pod(name: str, **spec: Any) -> JSON:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i:1"}], **spec}}


def _binding(pod: str, **metadata: Any) -> JSON:
    return {"metadata": {"name": pod, **metadata}, "target": {"kind": "Node", "name": "n"}}


_WRITES = [
    posting(MAPS, _map("a")),
    posting(MAPS, _map("a")),
    posting(MAPS, _map("A_B")),
    posting(MAPS, {"metadata": {}}),
    posting(MAPS, _map("b", namespace="other")),
    posting(MAPS, {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "b"}}),
    posting(MAPS, {"kind": "ConfigMap", "apiVersion": "v2", "metadata": {"name": "b"}}),
    posting(MAPS, _map("b", labels={"a b": "c"})),
    posting(MAPS, _map("b", labels={"a": "c d"})),
    posting(MAPS, _map("b", ownerReferences=[{"name": "x"}])),
    putting(f"{MAPS}/a", _map("a", resourceVersion="1")),
    putting(f"{MAPS}/a", _map("z")),
    putting(f"{MAPS}/nope", _map("nope")),
    putting(f"{MAPS}/a", _map("a", uid="bad")),
    merging(f"{MAPS}/a", {"data": {"k": "x"}}),
    merging(f"{MAPS}/a", {"metadata": {"name": "q"}}),
    merging(f"{MAPS}/nope", {"data": {}}),
    json_patching(f"{MAPS}/a", {"op": "test", "path": "/data/k", "value": "no"}),
    json_patching(f"{MAPS}/a", {"op": "remove", "path": "/data/nowhere"}),
    json_patching(f"{MAPS}/a", {"op": "replace", "path": "/data/k", "value": "y"}),
    Exchange("PATCH", f"{MAPS}/a", {"data": {}}),
    deleting(f"{MAPS}/a", {"propagationPolicy": "Weird"}),
    deleting(f"{MAPS}/a", dryRun="All"),
    deleting(f"{MAPS}/a"),
    deleting(f"{MAPS}/a"),
    posting(LEASES, {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15}}),
    putting(f"{LEASES}/l", {"metadata": {"name": "l"}, "spec": {"holderIdentity": "b"}}),
    posting(BUDGETS, {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}}),
    deleting("/api/v1/namespaces/default"),
    deleting("/api/v1/namespaces/nope"),
    posting(CLASSES, {"metadata": {"name": "system-x"}, "value": 5}),
    posting(CLASSES, {"metadata": {"name": "too-high"}, "value": 1_000_000_001}),
    posting(CLASSES, {"metadata": {"name": "hi-{ns}"}, "value": 1000}),
    merging(f"{CLASSES}/hi-{{ns}}", {"value": 1001}),
    deleting(f"{CLASSES}/hi-{{ns}}"),
]
_APPLIES = [
    applying(f"{MAPS}/s", "v1", "ConfigMap", data={"k": "1", "j": "2"}),
    Exchange("PATCH", f"{MAPS}/s", {"kind": "ConfigMap"}, APPLY, {"fieldManager": "m1"}),
    applying(f"{MAPS}/s", "v1", "ConfigMap", manager="m1", data={"k": "1", "j": "2"}),
    applying(f"{MAPS}/s", "v1", "ConfigMap", manager="m2", data={"k": "2"}),
    applying(f"{MAPS}/s", "v1", "ConfigMap", manager="m2", force="true", data={"k": "2"}),
    merging(f"{MAPS}/s", {"data": {"x": "1"}}),
    applying(f"{MAPS}/s", "v1", "ConfigMap", manager="m1"),
    getting(f"{MAPS}/s"),
]
_LISTS = [
    getting(f"{MAPS}/nope"),
    getting(MAPS, fieldSelector="foo=bar"),
    getting(MAPS, labelSelector="a=b=c"),
    getting(MAPS, resourceVersionMatch="Exact"),
    getting(MAPS, resourceVersion="0", resourceVersionMatch="Exact"),
    getting(MAPS, **{"continue": "garbage"}),
    getting(MAPS, watch="true", sendInitialEvents="true"),
    getting(MAPS, watch="true", resourceVersionMatch="NotOlderThan"),
    getting("/api/v1/nothing"),
    posting("/api/v1/nodes/x", {}),
]
_READY = [{"type": "Ready", "status": "True"}]
_PODS = [
    posting(PODS, _pod("p")),
    getting(f"{PODS}/p"),
    posting(PODS, {"metadata": {"name": "q"}}),
    posting(PODS, {"metadata": {"name": "q"}, "spec": {"containers": []}}),
    posting(PODS, {"metadata": {"name": "q"}, "spec": {"containers": [{"name": "C"}]}}),
    posting(PODS, {"metadata": {"name": "q"}, "spec": {"containers": [{"name": "a", "image": "x"}] * 2}}),
    posting(PODS, _pod("q", restartPolicy="Bad")),
    posting(PODS, _pod("q", priorityClassName="nope")),
    posting(PODS, _pod("q", priority=5)),
    posting(PODS, _pod("q", schedulingGates=[{"name": "a"}, {"name": "a"}])),
    posting(PODS, _pod("q", schedulingGates=[{"name": "a"}], nodeName="n")),
    posting(PODS, _pod("g", schedulingGates=[{"name": "example.com/a"}])),
    posting(f"{PODS}/g/binding", _binding("g")),
    posting(f"{PODS}/g/binding", _binding("")),
    merging(f"{PODS}/g", {"spec": {"schedulingGates": [{"name": "example.com/b"}]}}),
    merging(f"{PODS}/g", {"spec": {"nodeSelector": {"a": "b"}}}),
    merging(f"{PODS}/g", {"spec": {"schedulingGates": []}}),
    posting(f"{PODS}/g/binding", _binding("g", uid="bad")),
    posting(f"{PODS}/g/binding", _binding("g", annotations={"a": "b"})),
    posting(f"{PODS}/g/binding", _binding("g")),
    getting(f"{PODS}/g"),
    merging(f"{PODS}/p", {"spec": {"nodeName": "x"}}),
    merging(f"{PODS}/p", {"spec": {"priority": 3}}),
    merging(f"{PODS}/p", {"spec": {"activeDeadlineSeconds": 5}}),
    strategically(f"{PODS}/p", {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}),
    merging(f"{PODS}/p", {"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}}),
    strategically(f"{PODS}/p/status", {"status": {"phase": "Running", "conditions": _READY}}),
    strategically(f"{PODS}/p/status", {"status": {"conditions": [{"type": "X", "status": "True"}]}}),
    strategically(f"{PODS}/p/status", {"status": {"conditions": _READY}}),
    strategically(f"{PODS}/p/status", {"status": {"conditions": [{"type": "Y", "status": "True"}, *_READY]}}),
    strategically(f"{PODS}/p/status", {"status": {"conditions": [{"type": "X", "$patch": "delete"}]}}),
    strategically(f"{PODS}/p", {"metadata": {"finalizers": ["example.com/a", "example.com/b"]}}),
    strategically(f"{PODS}/p", {"metadata": {"finalizers": ["example.com/c", "example.com/a"]}}),
    strategically(f"{PODS}/p", {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}}),
    merging(f"{PODS}/p", {"metadata": {"finalizers": None}}),
    getting(PODS, fieldSelector="spec.priority=0"),
    deleting(f"{PODS}/g"),
    posting(f"{PODS}/g/binding", _binding("g")),
    deleting(f"{PODS}/g", {"gracePeriodSeconds": 0}),
    deleting(f"{PODS}/p"),
]
_GANGS = [
    posting(PODS, _pod("m", schedulingGroup={"podGroupName": "x"}, schedulingGates=[{"name": "example.com/a"}])),
    merging(f"{PODS}/m", {"spec": {"schedulingGroup": {"podGroupName": "y"}}}),
    posting(GROUPS, {"metadata": {"name": "x"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}),
    posting(GROUPS, {"metadata": {"name": "y"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 0}}}}),
    posting(GROUPS, {"metadata": {"name": "y"}, "spec": {"schedulingPolicy": {}}}),
    posting(GROUPS, {"metadata": {"name": "y"}, "spec": {}}),
    posting(GROUPS, {"metadata": {"name": "y"}, "spec": {"schedulingPolicy": {"basic": {}, "gang": {"minCount": 1}}}}),
    merging(f"{GROUPS}/x", {"spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}}),
    merging(f"{GROUPS}/x", {"spec": {"schedulingPolicy": {"gang": None, "basic": {}}}}),
    merging(f"{GROUPS}/x", {"spec": {"priorityClassName": "system-node-critical"}}),
    posting(
        WORKLOADS,
        {
            "metadata": {"name": "w"},
            "spec": {"podGroupTemplates": [{"name": "a", "schedulingPolicy": {"gang": {"minCount": 2}}}]},
        },
    ),
    posting(WORKLOADS, {"metadata": {"name": "v"}, "spec": {"podGroupTemplates": []}}),
    posting(
        WORKLOADS,
        {
            "metadata": {"name": "v"},
            "spec": {"podGroupTemplates": [{"name": "a", "schedulingPolicy": {"basic": {}}}] * 2},
        },
    ),
]
FORMATS: Mapping[str, tuple[str, tuple[Any, ...]]] = {
    "int32": ("integer", (2**31 - 1, 2**31, -(2**31) - 1)),
    "int64": ("integer", (2**63 - 1, 2**63, -(10**30))),
    "float": ("number", (1.5, 1e39)),
    "date-time": (
        "string",
        ("2026-01-02T03:04:05.1Z", "2026-01-02t03:04:05+01:00", "2026-01-02", "2026-13-02T03:04:05Z"),
    ),
    "date": ("string", ("2026-01-02", "2026-1-2")),
    "duration": ("string", ("1h2m", "2 weeks", "0", "1", "x")),
    "uri": ("string", ("http://a/b", "/a", "a", "http://a b")),
    "email": ("string", ("a@b", "A <a@b.c>", "a")),
    "hostname": ("string", ("a", "a.bc", "a.b", "-a")),
    "ipv4": ("string", ("01.2.3.4", "1.2.3.256")),
    "ipv6": ("string", ("::1", "fe80::1%eth0")),
    "cidr": ("string", ("::/0", "1.2.3.4/33")),
    "mac": ("string", ("0000.5e00.5301", "00:00:5e:00:53")),
    "uuid4": ("string", ("a2ae1a2c5c5c4a4a8a8a0123456789ab", "a2ae1a2c-5c5c-5a4a-8a8a-0123456789ab")),
    "byte": ("string", ("YQ==", "YQ", "")),
    "isbn": ("string", ("978-0-306-40615-7", "0-306-40615-2", "1")),
    "creditcard": ("string", ("4111-1111-1111-1111", "1")),
    "ssn": ("string", ("123-45-6789", "123456789")),
    "hexcolor": ("string", ("#fff", "#ffff")),
    "rgbcolor": ("string", ("rgb(1, 2, 3)", "rgb(256,2,3)")),
    "k8s-short-name": ("string", ("a", "a.b")),
    "nonsense": ("string", ("x",)),
}
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
                                    **{name: {"type": kind, "format": name} for name, (kind, _) in FORMATS.items()},
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


def _strange(**metadata: Any) -> JSON:
    return {**_gear("s", min=1), "metadata": {"name": "s", **metadata}}


_CUSTOM = [
    *(posting(GEARS, _gear("t", min=1, **{n: v}), dryRun="All") for n, (_, vs) in FORMATS.items() for v in vs),
    posting(GEARS, _strange(foo=1), fieldValidation="Strict"),
    posting(GEARS, _strange(ownerReferences=[{"bar": 1}]), fieldValidation="Strict"),
    posting(GEARS, _strange(generation="1")),
    posting(GEARS, _strange(creationTimestamp="x")),
    posting(GEARS, _strange(foo=1)),
    merging(f"{GEARS}/s", {"metadata": {"foo": 1}}, fieldValidation="Strict"),
    Exchange("PATCH", f"{GEARS}/s", _strange(foo=1), APPLY, {"fieldManager": "m"}),
    deleting(f"{GEARS}/s"),
    posting(GEARS, {**_gear("f", min=1, junk=1, free={"a": 1}, note=None, port="x"), "status": {"replicas": 1}}),
    posting(GEARS, _gear("g", min=1, junk=1), fieldValidation="Strict"),
    posting(GEARS, _gear("g", min=3)),
    posting(GEARS, _gear("g", min=0, mode="z", name="abcdefg", port=1.5, tags=["a", "b", "c", "d"])),
    posting(GEARS, _gear("g", min="1")),
    posting(GEARS, _gear("g", min=1, parts=[{"name": "a"}, {"name": "a"}])),
    posting(GEARS, _gear("g", min=1, parts=[{"v": 1}])),
    posting(GEARS, _gear("g")),
    posting(GEARS, {"metadata": {"name": "g"}, "spec": {}}),
    merging(f"{GEARS}/f", {"spec": {"min": 2}}),
    merging(f"{GEARS}/f", {"spec": {"min": 9}}),
    merging(f"{GEARS}/f/status", {"status": {"replicas": 4}, "spec": {"min": 1}}),
    strategically(f"{GEARS}/f", {"spec": {"min": 2}}),
    putting(f"{GEARS}/f", _gear("f", min=2)),
    getting(f"{GEARS}/f/scale"),
    merging(f"{GEARS}/f/scale", {"spec": {"replicas": 5}}),
    applying(f"{GEARS}/f", "parity.example.com/v1", "Gear", manager="m1", spec={"min": 2, "parts": [{"name": "a"}]}),
    applying(f"{GEARS}/f", "parity.example.com/v1", "Gear", manager="m2", spec={"parts": [{"name": "b"}]}),
    applying(f"{GEARS}/f", "parity.example.com/v1", "Gear", manager="m1", spec={"min": 2}),
    deleting(f"{GEARS}/f"),
]

DEFINITION = posting(DEFINITIONS, _DEFINITION)
STORIES: Mapping[str, list[Exchange]] = {
    "writes": _WRITES,
    "applies": _APPLIES,
    "lists": _LISTS,
    "pods": _PODS,
    "gangs": _GANGS,
    "custom resources": _CUSTOM,
}

"""Requests that try to get more than they should, as one story for any API server: what is sent, and the only answer.

The administrator prepares, ``mallory`` attacks. A step may wait for the server to take note of what went before.
"""

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spinney.api.struct import JSON

JSON_BODY = {"content-type": "application/json"}
YAML_BODY = {"content-type": "application/yaml"}
MERGE = {"content-type": "application/merge-patch+json"}
JSON_PATCH = {"content-type": "application/json-patch+json"}
APPLY = {"content-type": "application/apply-patch+yaml"}
AS_MALLORY = {"impersonate-user": "mallory"}

_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_ROLES, _BINDINGS = f"{_RBAC}/clusterroles", f"{_RBAC}/clusterrolebindings"
_MAPS = "/api/v1/namespaces/default/configmaps"
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
_APPLIED = f"{_MAPS}/attack-made?fieldManager=x"
_DATA = {"a": "b"}
_AGGREGATED = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"


@dataclass(frozen=True)
class Step:
    """One request, the status it must have, and whether the server may need a moment until it has."""

    about: str
    method: str
    path: str
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = 200
    patient: bool = False


def _step(about: str, method: str, path: str, body: Any = None, status: int = 200, **options: Any) -> Step:
    raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    headers = {**JSON_BODY, **options.pop("headers", {})}
    return Step(about, method, path, raw, headers, status, **options)


def _role(name: str, *rules: JSON) -> JSON:
    return {"metadata": {"name": name}, "rules": list(rules)}


def _rule(group: str, resources: str, verbs: str) -> JSON:
    return {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()}


def _binding(role: str, user: str) -> JSON:
    return {
        "metadata": {"name": role},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "User", "name": user}],
    }


def _map(name: str, **more: Any) -> JSON:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **more}


def _lease(name: str) -> JSON:
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": {}}


def _webhook(url: str) -> JSON:
    hook = {
        "name": "spy.attack.example",
        "clientConfig": {"url": url},
        "rules": [{"apiGroups": ["attack"], "apiVersions": ["v1"], "resources": ["secrets"], "operations": ["CREATE"]}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    return {"metadata": {"name": "attack"}, "webhooks": [hook]}


ROLES = (
    _step("a strong role", "POST", _ROLES, _role("attack-strong", _rule("", "secrets", "*")), 201),
    _step("its binding", "POST", _BINDINGS, _binding("attack-strong", "alice"), 201),
    _step(
        "what mallory may do",
        "POST",
        _ROLES,
        _role(
            "attack-mallory",
            _rule("rbac.authorization.k8s.io", "clusterroles clusterrolebindings", "get patch update"),
            _rule("", "configmaps", "get patch update"),
            _rule("coordination.k8s.io", "leases", "get patch update"),
        ),
        201,
    ),
    _step("mallory's binding", "POST", _BINDINGS, _binding("attack-mallory", "mallory"), 201),
    _step("mallory may look", "GET", f"{_ROLES}/attack-strong", headers=AS_MALLORY, patient=True),
    *(
        _step(about, "PATCH", path, {"metadata": metadata}, status, headers=AS_MALLORY | MERGE)
        for about, path, metadata, status in (
            ("a label that makes others stronger", f"{_ROLES}/attack-strong", {"labels": _AGGREGATED}, 403),
            ("an annotation on a strong role", f"{_ROLES}/attack-strong", {"annotations": {"a": "b"}}, 403),
            ("what garbage collection needs", f"{_ROLES}/attack-strong", {"finalizers": []}, 200),
            ("a label on a strong binding", f"{_BINDINGS}/attack-strong", {"labels": {"a": "b"}}, 403),
        )
    ),
    _step("apply what is not there", "PATCH", _APPLIED, _map("attack-made"), 403, headers=AS_MALLORY | APPLY),
    _step("replace what is not there", "PUT", f"{_LEASES}/attack-made", _lease("attack-made"), 403, headers=AS_MALLORY),
    _step("apply with the right to create", "PATCH", _APPLIED, _map("attack-made"), 201, headers=APPLY),
    _step("apply what is there", "PATCH", _APPLIED, _map("attack-made", data=_DATA), headers=AS_MALLORY | APPLY),
    _step("put with the right to create", "PUT", f"{_LEASES}/attack-made", _lease("attack-made"), 201),
)

_MANY = [{"op": "test", "path": "/kind", "value": "ConfigMap"}] * 10_001
_NAMED = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: attack-%s}\n"
_BOMB = gzip.compress(json.dumps(_map("attack-zip", data={"a": "x" * 5_000_000})).encode())
_DOUBLING = [{"op": "copy", "from": "/data", "path": f"/data/copy{i}"} for i in range(24)]

BODIES = (
    _step("something to copy", "POST", _MAPS, _map("attack-copies", data={"a": "x" * 1000}), 201),
    _step("copies of copies", "PATCH", f"{_MAPS}/attack-copies", _DOUBLING, 422, headers=JSON_PATCH),
    _step("too many operations", "PATCH", f"{_MAPS}/attack-copies", _MANY, 413, headers=JSON_PATCH),
    *(
        _step(about, "POST", _MAPS, _NAMED % name + b"data: {" + data + b"}\n", status, headers=YAML_BODY)
        for about, name, data, status in (
            ("minutes that are no number", b"time", b"at: 12:30, on: 2026-01-02", 201),
            ("a number to the base of 60 with many digits", b"long", b"at: " + b":59" * 100_000, 400),
            ("the same after a digit", b"long", b"at: 1" + b":59" * 100_000, 201),
        )
    ),
    *(
        _step(about, "POST", _MAPS, body, 400, headers={"content-encoding": "gzip"})
        for about, body in (("a body that is not gzip", b"\x1f\x8bnot at all"), ("a body that becomes large", _BOMB))
    ),
    *(
        _step(f"a limit of {text}", "GET", f"{_MAPS}?limit={text}", status=400)
        for text in ("abc", "%C2%B2", "%D9%A1", "--5", "99999999999999999999", "1e3", "1.0")
    ),
    _step("a limit below nothing", "GET", f"{_MAPS}?limit=-1", status=200),
    _step("a dry run of another kind", "POST", f"{_MAPS}?dryRun=x1", _map("attack-dry"), 422),
    *(
        _step(f"a webhook at {url}", "POST", f"{_ADMISSION}/validatingwebhookconfigurations", _webhook(url), 422)
        for url in (
            "http://127.0.0.1:1/spy",
            "https:///spy",
            "https://user:word@example.com/",
            "https://example.com/?a=b",
            "https://example.com/#a",
            "file:///etc/passwd",
            "127.0.0.1:1",
        )
    ),
    *(
        _step(f"a token of {about}", "GET", _MAPS, status=401, headers={"authorization": f"Bearer {token}"})
        for about, token in (("letters from elsewhere", "ÿþ"), ("dots", "..."), ("nothing", "e30.e30.e30"))
    ),
)

_POLICY = {
    "metadata": {"name": "attack.example"},
    "spec": {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "objectSelector": {"matchLabels": {"attack": "cel"}},
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
            ],
        },
        "validations": [
            {
                "expression": "object.data.all(a, object.data.all(b, object.data.all(c, (a + b + c).size() > 0)))",
                "message": "no",
            }
        ],
    },
}
_POLICY_BINDING = {
    "metadata": {"name": "attack.example"},
    "spec": {"policyName": "attack.example", "validationActions": ["Deny"]},
}
_COSTLY = _map("attack-cel", data={f"key{i}": "x" for i in range(400)})
_COSTLY["metadata"]["labels"] = {"attack": "cel"}

EXPRESSIONS = (
    _step("a costly policy", "POST", f"{_ADMISSION}/validatingadmissionpolicies", _POLICY, 201),
    _step("its binding", "POST", f"{_ADMISSION}/validatingadmissionpolicybindings", _POLICY_BINDING, 201),
    _step("an object it takes long about", "POST", f"{_MAPS}?dryRun=All", _COSTLY, 422, patient=True),
)

CLEANING = tuple(
    _step(f"remove {path}", "DELETE", path)
    for path in (
        f"{_ADMISSION}/validatingadmissionpolicybindings/attack.example",
        f"{_ADMISSION}/validatingadmissionpolicies/attack.example",
        f"{_ROLES}/attack-strong",
        f"{_ROLES}/attack-mallory",
        f"{_BINDINGS}/attack-strong",
        f"{_BINDINGS}/attack-mallory",
        f"{_LEASES}/attack-made",
        *(f"{_MAPS}/attack-{name}" for name in ("made", "copies", "time", "long")),
    )
)
STORY = (*ROLES, *BODIES, *EXPRESSIONS, *CLEANING)

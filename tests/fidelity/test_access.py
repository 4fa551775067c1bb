"""Role-based access control beside kube-apiserver's: the same roles, the same verdicts, the same words."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from spinney.api.struct import JSON
from spinney.kube.transport import Request, Transport
from spinney.runtime import Runtime
from spinney.server import ApiServer, ServerOptions
from spinney.server.authorization.bootstrap import first_bindings, first_roles
from spinney.sim.embedded.transport import InProcessTransport
from spinney.testing.controlplane import ControlPlane
from tests.server.test_access import a_binding, a_role, a_rule

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_ROLES, _BINDINGS = f"{_RBAC}/namespaces/default/roles", f"{_RBAC}/namespaces/default/rolebindings"
_REVIEWS = "/apis/authorization.k8s.io/v1"
_PODS = "/api/v1/namespaces/default/pods"
_ATTEMPTS = 1200


@asynccontextmanager
async def _both(plane: ControlPlane) -> AsyncIterator[tuple[Transport, Transport]]:
    runtime = Runtime.system()
    real = plane.connect(runtime)
    yield real.transport, InProcessTransport(ApiServer(runtime, ServerOptions(authorization="RBAC")))
    await real.transport.close()
    runtime.executor.close()


async def _said(transport: Transport, user: str, method: str, path: str, body: JSON | None = None) -> Any:
    headers = {"content-type": "application/json"} | ({"impersonate-user": user} if user else {})
    sent = None if body is None else json.dumps(body).encode()
    answer = await transport.request(Request(method, path, headers=headers, body=sent))
    content = json.loads(answer.body)
    kept = ("message", "reason", "details", "rules", "aggregationRule", "roleRef", "subjects")
    status = content.get("status")
    shown = {name: content.get(name) for name in kept}
    if isinstance(status, dict) and "resourceRules" in status:  # which come in no order
        status = {name: sorted(map(str, rules)) for name, rules in status.items() if isinstance(rules, list)}
    return {"code": answer.status, **shown, "status": status if isinstance(status, dict) else None}


def _may(**attributes: str) -> JSON:
    return {"spec": {"resourceAttributes": attributes}}


_STORY: list[tuple[str, str, str, JSON | None]] = [
    ("", "POST", _BINDINGS, a_binding("admin", "trent")),
    ("", "POST", _BINDINGS, a_binding("gone", "mallory", "Role")),
    ("mallory", "GET", _PODS, None),
    ("mallory", "GET", f"{_PODS}/x/log", None),
    ("mallory", "GET", "/api/v1/nodes/x", None),
    ("mallory", "GET", "/api/v1/namespaces/default", None),
    ("mallory", "DELETE", "/apis/foo.com/v1/bars", None),
    ("mallory", "GET", "/metrics", None),
    ("trent", "GET", f"{_PODS}/x", None),
    ("trent", "POST", f"{_PODS}/x/binding", {}),
    ("trent", "POST", _ROLES, a_role("wide", a_rule("get create", "nodes pods"), a_rule("*", "y", "x", "a b"))),
    ("trent", "POST", _ROLES, a_role("same", a_rule("get list", "pods"))),
    ("trent", "POST", _BINDINGS, a_binding("cluster-admin", "mallory")),
    ("trent", "POST", _BINDINGS, a_binding("nowhere", "mallory")),
    ("trent", "POST", _BINDINGS, a_binding("view", "mallory")),
    ("mallory", "POST", f"{_REVIEWS}/selfsubjectaccessreviews", _may(verb="get", resource="pods", namespace="default")),
    (
        "mallory",
        "POST",
        f"{_REVIEWS}/selfsubjectaccessreviews",
        _may(verb="get", resource="secrets", namespace="default"),
    ),
    (
        "trent",
        "POST",
        f"{_REVIEWS}/selfsubjectaccessreviews",
        _may(verb="create", resource="pods", subresource="exec", namespace="default"),
    ),
    ("trent", "POST", f"{_REVIEWS}/subjectaccessreviews", {"spec": {"user": "mallory"}}),
    ("", "POST", f"{_REVIEWS}/subjectaccessreviews", {"spec": {"user": "mallory"}}),
    ("", "POST", f"{_REVIEWS}/selfsubjectrulesreviews", {"spec": {}}),
    ("", "POST", f"{_REVIEWS}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}}),
    ("", "DELETE", f"{_BINDINGS}/admin-trent", None),
    ("", "DELETE", f"{_BINDINGS}/gone-mallory", None),
    ("", "DELETE", f"{_BINDINGS}/view-mallory", None),
    ("", "DELETE", f"{_ROLES}/same", None),
]


async def test_access_is_granted_and_refused_alike(controlplane: ControlPlane) -> None:
    """Every request is allowed or refused by both servers, and refused in the same words."""
    async with _both(controlplane) as (real, ours):
        for user, method, path, body in _STORY:
            found = await _said(ours, user, method, path, body)
            expected = await _said(real, user, method, path, body)
            for _ in range(_ATTEMPTS if method == "GET" or path.startswith(_REVIEWS) else 0):
                if found == expected:
                    break
                await asyncio.sleep(0.05)  # a real server learns of bindings from watches of its own
                expected = await _said(real, user, method, path, body)
            if method == "DELETE" and expected["code"] == 200:
                expected, found = expected["code"], found["code"]
            assert found == expected, (user, method, path)


async def test_the_first_roles_are_the_same(controlplane: ControlPlane) -> None:
    """Every role and binding that the embedded cluster begins with is the one of a real cluster."""
    async with _both(controlplane) as (real, ours):
        paths = [f"{_RBAC}/clusterroles/{role['metadata']['name']}" for role in first_roles()]
        paths += [f"{_RBAC}/clusterrolebindings/{binding['metadata']['name']}" for binding in first_bindings()]
        for path in paths:
            found = await _said(ours, "", "GET", path)
            for _ in range(_ATTEMPTS):
                expected = await _said(real, "", "GET", path)
                if found == expected:
                    break
                await asyncio.sleep(0.05)  # a controller of the real cluster puts some roles together
            assert found == expected

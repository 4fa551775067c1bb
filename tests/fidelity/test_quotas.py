"""Quotas and limit ranges beside kube-apiserver's: the same is admitted, filled in, refused and counted.

Here the texts are compared, too: people read them, and tools look for them. What a quota's status says is compared once
both servers have counted: kube-controller-manager takes its time.
"""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from spinney.api.struct import JSON
from spinney.kube.transport import Request, Transport
from spinney.testing.controlplane import ControlPlane
from tests.fidelity.exchanges import MAPS, PODS, Exchange, deleting, getting, merging, posting
from tests.fidelity.kinds import CLAIMS, QUOTAS, SERVICES
from tests.fidelity.pair import Pair, paired, stable

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

RANGES = "/api/v1/namespaces/{ns}/limitranges"
_ATTEMPTS = 1200
_REFUSED = 400


def _pod(name: str, requests: JSON | None = None, limits: JSON | None = None, **spec: Any) -> JSON:
    resources = {field: given for field, given in (("requests", requests), ("limits", limits)) if given}
    containers = [{"name": "c", "image": "i:1", **({"resources": resources} if resources else {})}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}


def _quota(name: str, hard: JSON, **spec: Any) -> Exchange:
    return posting(QUOTAS, {"metadata": {"name": name}, "spec": {"hard": hard, **spec}})


def _range(name: str, *limits: JSON) -> Exchange:
    return posting(RANGES, {"metadata": {"name": name}, "spec": {"limits": list(limits)}})


def _claim(name: str, storage: str, **spec: Any) -> JSON:
    asked = {"resources": {"requests": {"storage": storage}}, "accessModes": ["ReadWriteOnce"], **spec}
    return {"metadata": {"name": name}, "spec": asked}


def _service(name: str, **spec: Any) -> JSON:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}, **spec}}


def _scope(name: str, operator: str, *values: str) -> JSON:
    expression = {"scopeName": name, "operator": operator} | ({"values": list(values)} if values else {})
    return {"matchExpressions": [expression]}


_SMALL, _LARGE = {"cpu": "500m", "memory": "64Mi"}, {"cpu": "2", "memory": "1Gi"}
_COUNTED = [
    _quota(
        "counts", {"pods": "2", "count/pods": "3", "count/configmaps": "3", "services": "1", "count/jobs.batch": "1"}
    ),
    getting(f"{QUOTAS}/counts"),
    posting(PODS, _pod("a")),
    posting(PODS, _pod("b")),
    posting(PODS, _pod("c")),
    posting(PODS, _pod("c"), dryRun="All"),
    getting(f"{QUOTAS}/counts"),
    merging(f"{PODS}/b/status", {"status": {"phase": "Succeeded"}}),
    getting(f"{QUOTAS}/counts"),
    posting(PODS, _pod("c")),
    posting(PODS, _pod("d")),
    deleting(f"{PODS}/a"),
    getting(f"{QUOTAS}/counts"),
    posting(PODS, _pod("d"), dryRun="All"),
    getting(f"{QUOTAS}/counts"),
    posting(MAPS, {"metadata": {"name": "m"}}),
    posting(MAPS, {"metadata": {"name": "n"}}),
    posting(MAPS, {"metadata": {"name": "o"}}),
    posting(SERVICES, _service("s")),
    posting(SERVICES, _service("t")),
    merging(f"{QUOTAS}/counts", {"spec": {"hard": {"services": "2", "pods": None}}}),
    getting(f"{QUOTAS}/counts"),
    posting(SERVICES, _service("t")),
    deleting(f"{QUOTAS}/counts"),
    posting(PODS, _pod("e")),
]
_COMPUTE = [
    _quota("compute", {"requests.cpu": "2", "requests.memory": "1Gi", "limits.cpu": "4", "requests.nvidia.com/gpu": 2}),
    getting(f"{QUOTAS}/compute"),
    posting(PODS, _pod("a")),
    posting(PODS, _pod("a", _SMALL)),
    posting(PODS, _pod("a", _SMALL, _LARGE)),
    getting(f"{QUOTAS}/compute"),
    posting(PODS, _pod("b", {"cpu": "1500m", "memory": "512Mi"}, {"cpu": "2"})),
    posting(PODS, _pod("c", {"cpu": "1m", "memory": "500Mi"}, {"cpu": "1m"})),
    getting(f"{QUOTAS}/compute"),
    posting(PODS, _pod("c", {"cpu": 0, "memory": 0}, {"cpu": 0, "nvidia.com/gpu": 2})),
    posting(PODS, _pod("d", {"cpu": 0, "memory": 0}, {"cpu": 0, "nvidia.com/gpu": 1})),
    getting(f"{QUOTAS}/compute"),
    _quota("other", {"cpu": "1", "memory": "1G"}),
    getting(f"{QUOTAS}/other"),
    posting(PODS, _pod("e", {"cpu": "1m", "memory": "1Ki"}, {"cpu": "1m"})),
    deleting(f"{QUOTAS}/compute"),
    deleting(f"{QUOTAS}/other"),
]
_SCOPED = [
    _quota("best-effort", {"pods": "1"}, scopes=["BestEffort"]),
    _quota("ending", {"pods": "1", "cpu": "1"}, scopes=["Terminating", "NotBestEffort"]),
    _quota("critical", {"pods": "0"}, scopeSelector=_scope("PriorityClass", "In", "system-node-critical")),
    getting(f"{QUOTAS}/best-effort"),
    getting(f"{QUOTAS}/ending"),
    getting(f"{QUOTAS}/critical"),
    posting(PODS, _pod("a")),
    posting(PODS, _pod("b")),
    posting(PODS, _pod("c", {"cpu": "2"})),
    posting(PODS, _pod("d", {"cpu": "2"}, activeDeadlineSeconds=5)),
    posting(PODS, _pod("d", {"cpu": "1"}, activeDeadlineSeconds=5)),
    posting(PODS, _pod("e", {"cpu": "1"}, priorityClassName="system-node-critical")),
    merging(f"{PODS}/c", {"spec": {"activeDeadlineSeconds": 10}}),
    getting(f"{QUOTAS}/best-effort"),
    getting(f"{QUOTAS}/ending"),
    merging(f"{QUOTAS}/ending", {"spec": {"scopes": ["Terminating"]}}),
    _quota("f", {"pods": "1"}, scopes=["BestEffort", "NotBestEffort"]),
    _quota("f", {"cpu": "1"}, scopes=["BestEffort"]),
    _quota("f", {"pods": "1"}, scopes=["Nice"]),
    _quota("f", {"pods": "1"}, scopeSelector=_scope("PriorityClass", "In")),
    _quota("f", {"pods": "1"}, scopeSelector=_scope("Terminating", "In", "x")),
    _quota("f", {"pods": "1"}, scopeSelector=_scope("PriorityClass", "Exists", "x")),
    _quota("f", {"pods": "1"}, scopeSelector=_scope("PriorityClass", "Near", "x")),
    _quota("f", {"cows": "1"}),
    _quota("f", {"pods": "-1"}),
    _quota("f", {"pods": "1500m"}),
    _quota("f", {"a/b c": "1"}),
    _quota("f", {"storage": "1"}),
]
_STORAGE = [
    _quota("storage", {"requests.storage": "10Gi", "persistentvolumeclaims": "2"}),
    _quota("gold", {"gold.storageclass.storage.k8s.io/requests.storage": "5Gi"}),
    _quota("ports", {"services.nodeports": "1", "services.loadbalancers": "0"}),
    getting(f"{QUOTAS}/storage"),
    getting(f"{QUOTAS}/gold"),
    getting(f"{QUOTAS}/ports"),
    posting(CLAIMS, _claim("a", "4Gi", storageClassName="gold")),
    posting(CLAIMS, _claim("b", "2Gi", storageClassName="gold")),
    posting(CLAIMS, _claim("b", "7Gi")),
    posting(CLAIMS, _claim("b", "6Gi")),
    posting(CLAIMS, _claim("c", "0")),
    posting(CLAIMS, _claim("c", "1Mi")),
    getting(f"{QUOTAS}/storage"),
    getting(f"{QUOTAS}/gold"),
    posting(SERVICES, _service("s")),
    merging(f"{SERVICES}/s", {"spec": {"type": "NodePort"}}),
    posting(SERVICES, _service("t", type="NodePort")),
    posting(SERVICES, _service("t", type="LoadBalancer")),
    getting(f"{QUOTAS}/ports"),
]
_LIMITS = [
    _range(
        "a",
        {"type": "Container", "default": _LARGE, "defaultRequest": _SMALL, "max": {"cpu": "4"}, "min": {"cpu": "100m"}},
    ),
    posting(PODS, _pod("a")),
    posting(PODS, _pod("b", {"cpu": "1"}, initContainers=[{"name": "i", "image": "i:1"}])),
    posting(PODS, _pod("c", {"cpu": "50m"})),
    posting(PODS, _pod("c", {"cpu": "5"}, {"cpu": "5"})),
    posting(PODS, _pod("c", {"cpu": "1"}, {"cpu": "5"})),
    deleting(f"{RANGES}/a"),
    _range("b", {"type": "Pod", "max": {"memory": "1Gi"}, "min": {"cpu": "100m"}}),
    posting(PODS, _pod("d", {"cpu": "1"})),
    posting(PODS, _pod("d", {"cpu": "1"}, {"memory": "2Gi"})),
    posting(PODS, _pod("d", {"cpu": "1"}, {"memory": "1Gi"})),
    posting(PODS, _pod("e", {"memory": "1Gi"}, {"memory": "1Gi"})),
    deleting(f"{RANGES}/b"),
    _range("c", {"type": "Container", "maxLimitRequestRatio": {"memory": "1500m"}}),
    posting(PODS, _pod("f")),
    posting(PODS, _pod("f", {"memory": "1Gi"}, {"memory": "2Gi"})),
    posting(PODS, _pod("f", {"memory": "1Gi"}, {"memory": "1536Mi"})),
    deleting(f"{RANGES}/c"),
    _range("d", {"type": "PersistentVolumeClaim", "max": {"storage": "5Gi"}, "min": {"storage": "1Gi"}}),
    posting(CLAIMS, _claim("a", "6Gi")),
    posting(CLAIMS, _claim("a", "1Mi")),
    posting(CLAIMS, _claim("a", "2Gi")),
    _range("e", {"type": "Pod", "default": {"cpu": "1"}}),
    _range("e", {"type": "Table"}),
    _range("e", {"type": "Pod"}, {"type": "Pod"}),
    _range("e", {"type": "PersistentVolumeClaim"}),
    _range("e", {"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}}),
    _range("e", {"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "2"}}),
    _range("e", {"type": "Container", "max": {"cows": "2"}}),
    _range("e", {"type": "Container", "maxLimitRequestRatio": {"cpu": "500m"}}),
    _range("e", {"type": "Pod", "maxLimitRequestRatio": {"cpu": "3"}, "min": {"cpu": "1"}, "max": {"cpu": "2"}}),
    _range("e", {"type": "Container", "default": {"example.com/x": "1"}, "defaultRequest": {"example.com/x": "2"}}),
]
_STORIES = {"counts": _COUNTED, "compute": _COMPUTE, "scopes": _SCOPED, "storage": _STORAGE, "limits": _LIMITS}


async def _said(transport: Transport, exchange: Exchange, namespace: str) -> Any:
    sent = None if exchange.body is None else json.dumps(exchange.body).encode()
    path = exchange.path.replace("{ns}", namespace)
    headers = {"content-type": exchange.content_type}
    answer = await transport.request(Request(exchange.method, path, query=exchange.query, headers=headers, body=sent))
    body = json.loads(answer.body)
    if body.get("status") == "Failure":
        causes = sorted(str((each.get("field"), each["reason"])) for each in body["details"].get("causes") or ())
        text = sorted(body["message"]) if causes else body["message"]  # maps are walked in no order
        return {"code": answer.status, "causes": causes, **({} if causes else {"message": text})}
    if body.get("kind") == "ResourceQuota" and exchange.method != "GET":
        return {"code": answer.status, "spec": body["spec"]}  # counting has begun, or not
    if exchange.method == "DELETE":
        return {"code": answer.status}
    return {"code": answer.status, "object": stable(body)}


@pytest.fixture
def story(request: pytest.FixtureRequest) -> list[Exchange]:
    return _STORIES[request.param]


@pytest.mark.parametrize("story", _STORIES, indirect=True)
async def test_quotas_and_limits_are_enforced_alike(controlplane: ControlPlane, story: list[Exchange]) -> None:
    """Every write is admitted or refused by both servers, in the same words, and counted alike."""
    async with paired(controlplane) as pair:
        differing = []
        for exchange in story:
            real, ours = await _both(pair, exchange)
            if real != ours:
                differing.append(f"{exchange}\n  real: {json.dumps(real)}\n  ours: {json.dumps(ours)}")
        assert not differing, "\n".join(differing)


async def _both(pair: Pair, exchange: Exchange) -> tuple[Any, Any]:
    """Ask both, the real server at first for what changes nothing, and until it says the same.

    It counts late, learns of quotas and ranges from watches of its own, and walks quotas in no order: of two that are
    exceeded it names now one and now the other. What it refuses it is not asked again.
    """
    ours = await _said(pair.embedded, exchange, pair.namespace)
    trial = exchange
    if exchange.method in ("POST", "PATCH"):
        trial = replace(exchange, query={**exchange.query, "dryRun": "All"})
    for _ in range(_ATTEMPTS if exchange.method != "DELETE" else 0):
        real = await _said(pair.real, trial, pair.namespace)
        if real == ours:
            if ours["code"] >= _REFUSED:
                return real, ours
            break
        await asyncio.sleep(0.05)
    return await _said(pair.real, exchange, pair.namespace), ours

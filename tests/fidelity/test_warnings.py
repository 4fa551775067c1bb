"""Warnings beside kube-apiserver's: people are told the same, in the same words.

Of several warnings the last is compared: the client keeps one value of a header.
"""

import json
import re
from typing import Any

import pytest

from spinney.kube.transport import Request, Transport
from spinney.testing.controlplane import ControlPlane
from tests.fidelity.exchanges import MAPS, PODS, Exchange, deleting, getting, merging, posting
from tests.fidelity.kinds import CLAIMS, NODES, SERVICES
from tests.fidelity.pair import paired

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

_ENDPOINTS = "/api/v1/namespaces/{ns}/endpoints"
_DEPLOYMENTS = "/apis/apps/v1/namespaces/{ns}/deployments"
_OLD_LABEL = {"beta.kubernetes.io/os": "linux"}
_CONTAINER = {"name": "c", "image": "i:1"}


def _pod(name: str, container: Any = None, annotations: Any = None, **spec: Any) -> Any:
    metadata = {"name": name, **({"annotations": annotations} if annotations else {})}
    return {"metadata": metadata, "spec": {"containers": [{**_CONTAINER, **(container or {})}], **spec}}


def _deployment(name: str, **spec: Any) -> Any:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [_CONTAINER], **spec}}
    return {
        "metadata": {"name": name},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template},
    }


_AFFINITY = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "a"}]}}
_SPREAD = {"maxSkew": 1, "topologyKey": "failure-domain.beta.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
_REQUESTS: list[Exchange] = [
    posting(_ENDPOINTS, {"metadata": {"name": "e"}}),
    getting(_ENDPOINTS),
    getting(f"{_ENDPOINTS}/e"),
    getting(f"{_ENDPOINTS}/nope"),
    deleting(f"{_ENDPOINTS}/e"),
    posting(MAPS, {"metadata": {"name": "a"}, "daat": {}, "x": 1}),
    posting(MAPS, {"metadata": {"name": "b"}, "daat": {}}, fieldValidation="Ignore"),
    posting(MAPS, {"metadata": {"name": "c", "finalizers": ["foo"], "lables": {}}}),
    merging(f"{MAPS}/a", {"daat": {}}),
    posting(PODS, _pod("a.b")),
    posting(PODS, _pod("p1", {"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]})),
    posting(PODS, _pod("p2", {"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "$(A)2"}]})),
    posting(PODS, _pod("p3", {"ports": [{"containerPort": 80}, {"containerPort": 80}]})),
    posting(PODS, _pod("p4", {"ports": [{"containerPort": 80}, {"containerPort": 80, "hostPort": 8080}]})),
    posting(PODS, _pod("p5", nodeSelector=_OLD_LABEL)),
    posting(PODS, _pod("p6", annotations={"scheduler.alpha.kubernetes.io/critical-pod": ""})),
    posting(PODS, _pod("p7", {"resources": {"requests": {"memory": "100m"}}})),
    posting(PODS, _pod("p8", imagePullSecrets=[{"name": ""}, {"name": "a"}, {"name": "a"}])),
    posting(
        PODS, _pod("p9", hostAliases=[{"ip": "1.2.3.4", "hostnames": ["a"]}, {"ip": "1.2.3.4", "hostnames": ["b"]}])
    ),
    posting(PODS, _pod("p10", topologySpreadConstraints=[_SPREAD])),
    posting(PODS, _pod("p11", volumes=[{"name": "v", "gitRepo": {"repository": "x"}}])),
    posting(PODS, _pod("p12", affinity=_AFFINITY)),
    merging(f"{PODS}/p5", {"metadata": {"labels": {"a": "b"}}}),
    posting(_DEPLOYMENTS, _deployment("d", nodeSelector=_OLD_LABEL)),
    merging(f"{_DEPLOYMENTS}/d", {"metadata": {"labels": {"a": "b"}}}),
    merging(f"{_DEPLOYMENTS}/d", {"spec": {"template": {"spec": {"affinity": _AFFINITY}}}}),
    posting(SERVICES, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}], "externalIPs": ["1.2.3.4"]}}),
    posting(
        CLAIMS,
        {
            "metadata": {"name": "p", "annotations": {"volume.beta.kubernetes.io/storage-class": "x"}},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "100m"}}},
        },
    ),
    posting(
        "/apis/networking.k8s.io/v1/namespaces/{ns}/ingresses",
        {
            "metadata": {"name": "i", "annotations": {"kubernetes.io/ingress.class": "x"}},
            "spec": {"defaultBackend": {"service": {"name": "a", "port": {"number": 80}}}},
        },
    ),
    posting(NODES, {"metadata": {"name": "w-{ns}"}, "spec": {"externalID": "x"}}),
    deleting(f"{NODES}/w-{{ns}}"),
]


async def _told(transport: Transport, exchange: Exchange, namespace: str) -> Any:
    """Return the status code and the last warning of an answer."""
    body = None if exchange.body is None else json.dumps(exchange.body).replace("{ns}", namespace).encode()
    answer = await transport.request(
        Request(
            exchange.method,
            exchange.path.replace("{ns}", namespace),
            query=exchange.query,
            headers={"content-type": exchange.content_type},
            body=body,
        )
    )
    return answer.status, re.split(", (?=299 - )", answer.headers.get("warning", ""))[-1]


async def test_the_same_warnings_are_told(controlplane: ControlPlane) -> None:
    """Deprecated kinds, unknown fields and surprising parts of objects are warned about alike."""
    async with paired(controlplane) as pair:
        differing = []
        for exchange in _REQUESTS:
            real = await _told(pair.real, exchange, pair.namespace)
            ours = await _told(pair.embedded, exchange, pair.namespace)
            if real != ours:
                differing.append(f"{exchange}\n  real: {real}\n  ours: {ours}")
        assert not differing, "\n".join(differing)

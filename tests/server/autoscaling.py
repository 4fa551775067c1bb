"""Requests about autoscalers in both of their versions."""

from typing import Any

from spinney.api.struct import JSON
from tests.fidelity.exchanges import Exchange, applying, getting, merging, posting

_OLDER = "/apis/autoscaling/v1/namespaces/{ns}/horizontalpodautoscalers"
_NEWER = "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers"
_TARGET = {"kind": "Deployment", "name": "x", "apiVersion": "apps/v1"}
_AVERAGE = {"type": "AverageValue", "averageValue": "5"}
METRICS: list[JSON] = [
    {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}},
    {"type": "Pods", "pods": {"metric": {"name": "qps"}, "target": _AVERAGE}},
    {
        "type": "Object",
        "object": {
            "describedObject": _TARGET,
            "metric": {"name": "q", "selector": {"matchLabels": {"a": "b"}}},
            "target": {"type": "Value", "value": "5"},
        },
    },
    {"type": "External", "external": {"metric": {"name": "q"}, "target": _AVERAGE}},
    {
        "type": "ContainerResource",
        "containerResource": {
            "name": "cpu",
            "container": "c",
            "target": {"type": "Utilization", "averageUtilization": 5},
        },
    },
    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}},
]
STATUS: JSON = {
    "currentReplicas": 2,
    "desiredReplicas": 3,
    "observedGeneration": 1,
    "conditions": [
        {"type": "AbleToScale", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "r"}
    ],
    "currentMetrics": [
        {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 50, "averageValue": "1"}}},
        {"type": "Resource", "resource": {"name": "memory", "current": {"averageValue": "1Gi"}}},
    ],
}


def an_autoscaler(name: str, **spec: Any) -> JSON:
    return {"metadata": {"name": name}, "spec": {"maxReplicas": 3, "scaleTargetRef": _TARGET, **spec}}


def _use(percentage: int | None) -> JSON:
    return {"spec": {"targetCPUUtilizationPercentage": percentage}}


def _most(replicas: int) -> JSON:
    return {"maxReplicas": replicas, "scaleTargetRef": _TARGET}


AUTOSCALING: list[Exchange] = [
    posting(_OLDER, an_autoscaler("a")),
    posting(_OLDER, an_autoscaler("b", minReplicas=2, targetCPUUtilizationPercentage=50)),
    getting(f"{_NEWER}/a"),
    getting(f"{_NEWER}/b"),
    posting(_NEWER, an_autoscaler("c", metrics=METRICS, behavior={"scaleDown": {"stabilizationWindowSeconds": 5}})),
    getting(f"{_OLDER}/c"),
    merging(f"{_NEWER}/c/status", {"status": STATUS}),
    getting(f"{_OLDER}/c"),
    merging(f"{_OLDER}/c", _use(30)),
    getting(f"{_NEWER}/c"),
    merging(f"{_OLDER}/c", _use(None)),
    getting(f"{_NEWER}/c"),
    merging(f"{_OLDER}/b/status", {"status": {"currentReplicas": 1, "currentCPUUtilizationPercentage": 7}}),
    getting(f"{_NEWER}/b"),
    getting(f"{_OLDER}/b"),
    applying(f"{_OLDER}/d", "autoscaling/v1", "HorizontalPodAutoscaler", manager="m", spec=_most(4)),
    applying(f"{_OLDER}/d", "autoscaling/v1", "HorizontalPodAutoscaler", manager="m", spec=_most(5)),
    posting(_OLDER, an_autoscaler("e", foo=1), fieldValidation="Strict"),
]

"""Metrics of an autoscaler, held to what the API server asks of a HorizontalPodAutoscaler."""

from typing import Any

import pytest

from spinney.api.schema.validate_pod_clique_set import AdmissionPolicy, validate_pod_clique_set
from spinney.api.struct import JSON
from tests.api.samples import a_clique, a_set, defaulted, found

CPU: JSON = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}
RATE: JSON = {"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": "1k"}}


def resource(**fields: Any) -> JSON:
    """Build a metric of a resource."""
    return {"type": "Resource", "resource": CPU | fields}


def target(**fields: Any) -> JSON:
    """Build a metric of pods with a target."""
    return {"type": "Pods", "pods": RATE | {"target": fields}}


VALID = {
    "resource": resource(),
    "container": {"type": "ContainerResource", "containerResource": CPU | {"container": "main"}},
    "pods": {"type": "Pods", "pods": RATE},
    "external": {"type": "External", "external": RATE},
    "object": {"type": "Object", "object": RATE | {"describedObject": {"kind": "Service", "name": "front"}}},
}
INVALID = {
    "no type": ({}, "type", "Required"),
    "unknown type": ({"type": "Nonsense"}, "type", "NotSupported"),
    "no source": ({"type": "Pods"}, "pods", "Required"),
    "another source too": (resource() | {"pods": RATE}, "pods", "Forbidden"),
    "no resource": (resource(name=""), "resource.name", "Required"),
    "no container": (
        {"type": "ContainerResource", "containerResource": CPU},
        "containerResource.container",
        "Required",
    ),
    "no metric": ({"type": "Pods", "pods": RATE | {"metric": {}}}, "pods.metric.name", "Required"),
    "no object": (
        {"type": "Object", "object": RATE | {"describedObject": {"kind": "Service"}}},
        "object.describedObject.name",
        "Required",
    ),
    "no target": (resource(target=None), "resource.target", "Required"),
    "unknown target": (target(type="Most", value="1"), "pods.target.type", "NotSupported"),
    "no target type": (target(value="1"), "pods.target.type", "Required"),
    "nothing to reach": (target(type="Value"), "pods.target.averageValue", "Required"),
    "no amount": (target(type="Value", value="much"), "pods.target.value", "Invalid"),
    "nothing of it": (target(type="Value", value="0"), "pods.target.value", "Invalid"),
    "pods have no utilization": (
        target(type="Utilization", averageUtilization=3),
        "pods.target.averageUtilization",
        "Forbidden",
    ),
    "utilization of nothing": (
        resource(target={"type": "Utilization", "averageUtilization": 0}),
        "resource.target.averageUtilization",
        "Invalid",
    ),
}


def of_clique(metric: JSON) -> list[tuple[str, str]]:
    """Return what is wrong with a set whose clique is scaled by a metric."""
    clique = a_clique(autoScalingConfig={"maxReplicas": 5, "metrics": [metric]})
    return found(validate_pod_clique_set(defaulted(a_set(clique)), AdmissionPolicy()))


def of_group(metric: JSON) -> list[tuple[str, str]]:
    """Return what is wrong with a set whose scaling group is scaled by a metric."""
    scaling = {"maxReplicas": 5, "metrics": [metric]}
    groups = [{"name": "g", "cliqueNames": ["worker"], "scaleConfig": scaling}]
    return found(validate_pod_clique_set(defaulted(a_set(groups=groups)), AdmissionPolicy()))


@pytest.mark.parametrize("metric", VALID.values(), ids=VALID)
def test_every_kind_of_metric_is_accepted(metric: JSON) -> None:
    """A metric with a source of its type and a target is valid."""
    assert of_clique(metric) == of_group(metric) == []


@pytest.mark.parametrize(("metric", "field", "kind"), INVALID.values(), ids=INVALID)
def test_a_metric_no_autoscaler_could_have_is_refused(metric: JSON, field: str, kind: str) -> None:
    """What the API server would refuse in the autoscaler is refused in the set, at its path."""
    assert of_clique(metric) == [(f"spec.template.cliques[0].spec.autoScalingConfig.metrics[0].{field}", kind)]
    assert of_group(metric) == [(f"spec.template.podCliqueScalingGroups[0].scaleConfig.metrics[0].{field}", kind)]

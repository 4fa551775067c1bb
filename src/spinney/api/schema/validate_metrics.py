"""Rules for the metrics of an autoscaler, as the API server holds a HorizontalPodAutoscaler to them.

The autoscaler is made by a controller, long after its author has left. What the API server would refuse then is refused
when it is written. Metrics are carried as JSON, so any value may be of any type.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from spinney.api.field_error import FieldError, FieldPath, forbidden, invalid, not_supported, required
from spinney.api.quantity import InvalidQuantity, Quantity
from spinney.api.struct import JSON

SOURCES: Final = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
"""The field that describes the source of a metric of each type."""
TARGETS: Final = ("AverageValue", "Utilization", "Value")
_OF_RESOURCES: Final = ("resource", "containerResource")


def validate_metrics(metrics: Sequence[JSON], path: FieldPath) -> Iterator[FieldError]:
    """Check that each metric has one source, of its type, and a target."""
    for i, metric in enumerate(metrics):
        yield from _metric(metric, path.index(i))


def _metric(metric: JSON, path: FieldPath) -> Iterator[FieldError]:
    kind = metric.get("type")
    if not kind:
        yield required(path.child("type"), "say what kind of metric this is")
        return
    expected = SOURCES.get(kind) if isinstance(kind, str) else None
    if expected is None:
        yield not_supported(path.child("type"), kind, tuple(SOURCES))
        return
    for other in SOURCES.values():
        if other != expected and metric.get(other) is not None:
            yield forbidden(path.child(other), f"a metric of type {kind} only has {expected!r}")
    source = metric.get(expected)
    if not isinstance(source, dict):
        yield required(path.child(expected), f"a metric of type {kind} needs it")
        return
    yield from _source(expected, source, path.child(expected))


def _source(kind: str, source: JSON, path: FieldPath) -> Iterator[FieldError]:
    if kind in _OF_RESOURCES:
        if not source.get("name"):
            yield required(path.child("name"), "name a resource")
        if kind == "containerResource" and not source.get("container"):
            yield required(path.child("container"), "name a container")
    else:
        metric = source.get("metric")
        if not isinstance(metric, dict) or not metric.get("name"):
            yield required(path.child("metric", "name"), "name a metric")
    if kind == "object":
        described = source.get("describedObject")
        for field in ("kind", "name"):
            if not isinstance(described, dict) or not described.get(field):
                yield required(path.child("describedObject", field), "say which object the metric is of")
    yield from _target(kind, source.get("target"), path.child("target"))


def _target(kind: str, target: Any, path: FieldPath) -> Iterator[FieldError]:
    if not isinstance(target, dict):
        yield required(path, "say what the metric should be")
        return
    form = target.get("type")
    if not form:
        yield required(path.child("type"), "say what kind of target this is")
    elif form not in TARGETS:
        yield not_supported(path.child("type"), form, TARGETS)
    utilization = target.get("averageUtilization")
    if utilization is not None and kind not in _OF_RESOURCES:
        yield forbidden(path.child("averageUtilization"), "only resources have a utilization")
    elif utilization is not None and (not isinstance(utilization, int) or utilization < 1):
        yield invalid(path.child("averageUtilization"), utilization, "must be greater than 0")
    for field in ("value", "averageValue"):
        if target.get(field) is not None:
            yield from _amount(target[field], path.child(field))
    if all(target.get(field) is None for field in ("value", "averageValue", "averageUtilization")):
        yield required(path.child("averageValue"), "set averageUtilization, averageValue or value")


def _amount(text: Any, path: FieldPath) -> Iterator[FieldError]:
    try:
        positive = Quantity.parse(text) > Quantity(0)
    except (InvalidQuantity, TypeError, ValueError):
        yield invalid(path, text, "must be a quantity")
        return
    if not positive:
        yield invalid(path, text, "must be positive")

"""Horizontal pod autoscalers in their two forms: ``autoscaling/v2`` (which is stored) and ``v1``.

``v1`` knows one metric, the use of processors. Whatever else an autoscaler looks at stands in annotations there, in
the spelling of a form that is no longer served, so that a client of ``v1`` can write back what it has read and
nothing is lost. How scaling behaves is written in the names of Kubernetes' internal type.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from spinney.api.field_error import FieldError, invalid, required
from spinney.api.struct import JSON
from spinney.server.kinds.kind import Behaviour

_API_VERSIONS: Final = ("autoscaling/v1", "autoscaling/v2")
_PREFIX: Final = "autoscaling.alpha.kubernetes.io/"
_METRICS, _CURRENT, _CONDITIONS, _BEHAVIOUR = (
    _PREFIX + name for name in ("metrics", "current-metrics", "conditions", "behavior")
)
_TARGET, _NOW = "targetCPUUtilizationPercentage", "currentCPUUtilizationPercentage"
_OBSERVED: Final = ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas")
_SOURCES: Final[Mapping[str, str]] = {  # the field of each type of metric
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "Pods": "pods",
    "Object": "object",
    "External": "external",
}
_AT_MOST: Final = {"selectPolicy": "Max"}
_DOUBLING: Final[JSON] = {"type": "Percent", "value": 100, "periodSeconds": 15}
_SCALE_UP: Final[JSON] = {
    "stabilizationWindowSeconds": 0,
    **_AT_MOST,
    "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}, _DOUBLING],
}
_SCALE_DOWN: Final[JSON] = {**_AT_MOST, "policies": [_DOUBLING]}
_RULES: Final = ("stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance")


class AutoscalerBehaviour(Behaviour):
    """Autoscalers are stored, not run; by default they look at the use of the processor."""

    def fill_defaults(self, obj: JSON) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("minReplicas", 1)
        if not spec.get("metrics"):
            spec["metrics"] = [_processor_use("target", {"type": "Utilization", "averageUtilization": 80})]
        if (behaviour := spec.get("behavior")) is not None:
            behaviour["scaleUp"] = {**_SCALE_UP, **(behaviour.get("scaleUp") or {})}
            behaviour["scaleDown"] = {**_SCALE_DOWN, **(behaviour.get("scaleDown") or {})}

    def prepare_create(self, obj: JSON, now: datetime) -> None:
        obj["status"] = {"currentMetrics": None, "desiredReplicas": 0}

    def validate(self, obj: JSON, old: JSON | None, subresource: str) -> Iterator[FieldError]:
        spec = obj.get("spec") or {}
        least, most = spec.get("minReplicas", 1), spec.get("maxReplicas", 0)
        if least < 1:
            yield invalid("spec.minReplicas", least, "must be greater than or equal to 1")
        if most < 1:
            yield required("spec.maxReplicas", "must be greater than 0")
        if most < least:
            yield invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")
        target = spec.get("scaleTargetRef") or {}
        yield from (required(f"spec.scaleTargetRef.{name}") for name in ("kind", "name") if not target.get(name))


def older_autoscaler(autoscaler: JSON) -> JSON:
    """Return a ``v2`` autoscaler as ``v1``."""
    spec, status = {**(autoscaler.get("spec") or {})}, autoscaler.get("status") or {}
    told: dict[str, Any] = {}
    others, use = _split(spec.pop("metrics", None) or [], "target")
    if use is not None:
        spec[_TARGET] = use
    if others:
        told[_METRICS] = [_older_metric(metric, "target") for metric in others]
    if (behaviour := spec.pop("behavior", None)) is not None:
        told[_BEHAVIOUR] = {
            _capital(way): {_capital(name): _in_capitals(rules.get(name)) for name in _RULES}
            for way, rules in (("scaleUp", behaviour.get("scaleUp") or {}), ("scaleDown", behaviour["scaleDown"]))
        }
    shown = {"currentReplicas": 0, "desiredReplicas": 0}
    shown |= {name: status[name] for name in _OBSERVED if status.get(name) is not None}
    if current := status.get("currentMetrics"):
        told[_CURRENT] = [_older_metric(metric, "current") for metric in current]
        _, use = _split(current, "current")
        if use is not None:
            shown[_NOW] = use
    if conditions := status.get("conditions"):
        told[_CONDITIONS] = conditions
    annotations = {name: msgspec.json.encode(value).decode() for name, value in told.items()}
    return _rewritten(autoscaler, _API_VERSIONS[0], spec, shown, annotations)


def newer_autoscaler(autoscaler: JSON) -> JSON:
    """Return a ``v1`` autoscaler as ``v2``; annotations that cannot be read are nobody's metrics."""
    given, shown = autoscaler.get("spec") or {}, autoscaler.get("status") or {}
    spec = {name: value for name, value in given.items() if name not in {"metrics", "behavior"}}  # not v1's to say
    annotations = (autoscaler.get("metadata") or {}).get("annotations") or {}
    use = spec.pop(_TARGET, None)
    metrics = [_newer_metric(metric, "target") for metric in _items(annotations, _METRICS)]
    if use is not None:
        metrics.append(_processor_use("target", {"type": "Utilization", "averageUtilization": use}))
    if metrics:
        spec["metrics"] = metrics
    if isinstance(behaviour := _annotated(annotations, _BEHAVIOUR), dict):
        spec["behavior"] = _in_small_letters(behaviour)
    status: JSON = {name: shown[name] for name in _OBSERVED if shown.get(name) is not None}
    current = [_newer_metric(metric, "current") for metric in _items(annotations, _CURRENT)]
    use = shown.get(_NOW)
    if use is not None and _split(current, "current")[1] != use:
        current = [metric for metric in current if not _is_processor_use(metric, "current")]
        current.append(_processor_use("current", {"averageUtilization": use}))
    status["currentMetrics"] = current or None
    if conditions := _items(annotations, _CONDITIONS):
        status["conditions"] = conditions
    return _rewritten(autoscaler, _API_VERSIONS[1], spec, status, {})


def _rewritten(autoscaler: JSON, api_version: str, spec: JSON, status: JSON, told: Mapping[str, str]) -> JSON:
    metadata = autoscaler.get("metadata")
    if isinstance(metadata, dict):
        given = metadata.get("annotations") or {}
        annotations = {**{name: text for name, text in given.items() if not name.startswith(_PREFIX)}, **told}
        metadata = {name: value for name, value in metadata.items() if name != "annotations"}
        if annotations:
            metadata["annotations"] = annotations
    parts = {"apiVersion": api_version, "metadata": metadata, "spec": spec}
    return {**autoscaler, **parts, **({"status": status} if "status" in autoscaler else {})}


def _processor_use(field: str, amount: JSON) -> JSON:
    return {"type": "Resource", "resource": {"name": "cpu", field: amount}}


def _is_processor_use(metric: JSON, field: str) -> bool:
    resource = metric.get("resource") or {}
    return resource.get("name") == "cpu" and (resource.get(field) or {}).get("averageUtilization") is not None


def _split(metrics: list[JSON], field: str) -> tuple[list[JSON], int | None]:
    """Return the metrics but for the use of processors, and that."""
    others = [metric for metric in metrics if not _is_processor_use(metric, field)]
    for metric in metrics:
        if _is_processor_use(metric, field):
            use: int = metric["resource"][field]["averageUtilization"]
            return others, use
    return others, None


def _older_metric(metric: JSON, field: str) -> JSON:
    kind = metric.get("type", "")
    source = metric.get(_SOURCES.get(kind, "")) or {}
    amount, about = source.get(field) or {}, source.get("metric") or {}
    selecting = "metricSelector" if kind == "External" else "selector"
    older: JSON = {}
    for name, value in (
        ("name", source.get("name")),
        ("target", source.get("describedObject")),
        ("metricName", about.get("name")),
        *((_older_amount(kind, field, name), value) for name, value in amount.items() if name != "type"),
        (selecting, about.get("selector")),
        ("container", source.get("container")),
    ):
        if value is not None:
            older[name] = value
    if field == "current" and kind in {"Resource", "ContainerResource"}:
        older.setdefault("currentAverageValue", "0")
    return {"type": kind, _SOURCES.get(kind, kind): older}


def _older_amount(kind: str, field: str, name: str) -> str:
    return name if kind == "Object" and name == "averageValue" else field + _capital(name)


def _newer_metric(metric: JSON, field: str) -> JSON:
    kind = metric.get("type", "")
    older = metric.get(_SOURCES.get(kind, "")) or {}
    newer: JSON = {name: older[name] for name in ("name", "container") if name in older}
    about = {"name": older["metricName"]} if "metricName" in older else {}
    if selector := older.get("selector") or older.get("metricSelector"):
        about["selector"] = selector
    if about:
        newer["metric"] = about
    if kind == "Object" and "target" in older:
        newer["describedObject"] = older["target"]
    amount: JSON = {}
    for name in ("averageUtilization", "averageValue", "value"):
        value = older.get(field + _capital(name), older.get(name) if kind == "Object" else None)
        if value is not None and not (field == "current" and value == "0"):
            amount[name] = value
    if field == "target":
        kinds = {"averageUtilization": "Utilization", "averageValue": "AverageValue", "value": "Value"}
        amount = {"type": next((told for name, told in kinds.items() if name in amount), "Value"), **amount}
    newer[field] = amount
    return {"type": kind, _SOURCES.get(kind, kind): newer}


def _annotated(annotations: JSON, name: str) -> Any:
    text = annotations.get(name)
    if not isinstance(text, str):
        return None
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None


def _items(annotations: JSON, name: str) -> list[JSON]:
    told = _annotated(annotations, name)
    return [item for item in told if isinstance(item, dict)] if isinstance(told, list) else []


def _capital(name: str) -> str:
    return name[:1].upper() + name[1:]


def _in_capitals(value: Any) -> Any:
    if isinstance(value, dict):
        return {_capital(name): _in_capitals(child) for name, child in value.items()}
    return [_in_capitals(item) for item in value] if isinstance(value, list) else value


def _in_small_letters(value: Any) -> Any:
    if isinstance(value, dict):
        known = {name: child for name, child in value.items() if child is not None}
        return {name[:1].lower() + name[1:]: _in_small_letters(child) for name, child in known.items()}
    return [_in_small_letters(item) for item in value] if isinstance(value, list) else value

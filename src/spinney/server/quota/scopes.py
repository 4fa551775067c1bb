"""The scopes of a quota: which pods, or claims, it is about."""

from collections.abc import Iterator, Mapping
from typing import Any

from spinney.api.pod_rules.defaults import quality_of_service
from spinney.api.struct import JSON
from spinney.server.quota.usage import CLAIMS, PODS


def scopes_of(spec: JSON) -> tuple[JSON, ...]:
    """Return what a quota requires of the objects that it is about."""
    named = [{"scopeName": scope, "operator": "Exists"} for scope in spec.get("scopes") or ()]
    return (*named, *((spec.get("scopeSelector") or {}).get("matchExpressions") or ()))


def is_in_scope(scope: JSON, storage: str, obj: JSON) -> bool:
    """Tell whether an object meets one requirement; kinds that have no scopes meet none."""
    spec = obj.get("spec") or {}
    if storage == CLAIMS:
        return scope["scopeName"] == "VolumeAttributesClass" and _is_named(scope, _attribute_classes(obj))
    if storage != PODS:
        return False
    match scope["scopeName"]:
        case "Terminating":
            return is_terminating(obj)
        case "NotTerminating":
            return not is_terminating(obj)
        case "BestEffort":
            return quality_of_service(spec) == "BestEffort"
        case "NotBestEffort":
            return quality_of_service(spec) != "BestEffort"
        case "PriorityClass":
            name = spec.get("priorityClassName")
            return _is_named(scope, [name] if name else [])
        case "CrossNamespacePodAffinity":
            return any(term.get("namespaces") or "namespaceSelector" in term for term in _terms(spec))
    return False


def is_terminating(pod: JSON) -> bool:
    """Tell whether a pod is meant to end."""
    deadline = (pod.get("spec") or {}).get("activeDeadlineSeconds")
    return deadline is not None and deadline >= 0


def _is_named(scope: Mapping[str, Any], names: list[str]) -> bool:
    """Tell whether a requirement about a name holds for one of an object's names, or for its having none."""
    wanted = scope.get("values") or ()
    match scope.get("operator"):
        case "In":
            return any(name in wanted for name in names)
        case "NotIn":
            return not names or any(name not in wanted for name in names)
        case "DoesNotExist":
            return not names
    return bool(names)


def _attribute_classes(claim: JSON) -> list[str]:
    spec, status = claim.get("spec") or {}, claim.get("status") or {}
    names = (
        spec.get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName"),
    )
    return [name for name in names if name]


def _terms(spec: JSON) -> Iterator[JSON]:
    affinity = spec.get("affinity") or {}
    for name in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(name) or {}
        yield from terms.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        for weighted in terms.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            yield weighted.get("podAffinityTerm") or {}

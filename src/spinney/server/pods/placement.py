"""The rules of what a pod says about where it may run, and what it is called there."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

from spinney.api.names import dns_label_faults, dns_subdomain_faults, label_value_faults, qualified_name_faults
from spinney.api.struct import JSON
from spinney.server.exchange.status import (
    Cause,
    duplicate_value,
    forbidden_value,
    invalid_value,
    required,
    unsupported_value,
)

_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_TOLERATION_OPERATORS: Final = ("Equal", "Exists")
_WITH_VALUES: Final = ("In", "NotIn")
_WITH_ONE_NUMBER: Final = ("Gt", "Lt")
_WITHOUT_VALUES: Final = ("Exists", "DoesNotExist")
_WHEN_UNSATISFIABLE: Final = ("DoNotSchedule", "ScheduleAnyway")
_NEEDED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_WANTED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_key_faults = lru_cache(maxsize=4096)(qualified_name_faults)
_LONGEST_HOST_NAME: Final = 64  # what Linux has room for


def host_name_causes(spec: JSON, path: str) -> Iterator[Cause]:
    """Yield what is wrong with the names that a pod is to have on the network."""
    for field in ("hostname", "subdomain"):
        if name := spec.get(field):
            yield from (invalid_value(f"{path}.{field}", name, fault) for fault in dns_label_faults(name))
    override = spec.get("hostnameOverride")
    if override is None:
        return
    field = f"{path}.hostnameOverride"
    if spec.get("hostNetwork"):
        yield forbidden_value(field, "may not be specified when hostNetwork is true")
    if spec.get("setHostnameAsFQDN"):
        yield forbidden_value(field, "may not be specified when setHostnameAsFQDN is true")
    if len(override) > _LONGEST_HOST_NAME:
        yield Cause("FieldValueTooLong", field, f"Too long: may not be more than {_LONGEST_HOST_NAME} bytes")
    yield from (invalid_value(field, override, fault) for fault in dns_subdomain_faults(override))


def placement_causes(spec: JSON, path: str) -> Iterator[Cause]:
    """Yield what is wrong with what a pod spec at ``path`` says to a scheduler."""
    yield from _label_causes(f"{path}.nodeSelector", spec.get("nodeSelector") or {})
    if node := spec.get("nodeName"):
        yield from (invalid_value(f"{path}.nodeName", node, fault) for fault in dns_subdomain_faults(node))
    yield from _gate_causes(f"{path}.schedulingGates", spec.get("schedulingGates") or ())
    if spec.get("schedulingGates") and node:
        yield forbidden_value(f"{path}.nodeName", "cannot be set until all schedulingGates have been cleared")
    if (group := spec.get("schedulingGroup")) is not None:
        field, name = f"{path}.schedulingGroup.podGroupName", group.get("podGroupName") or ""
        yield from (invalid_value(field, name, fault) for fault in dns_subdomain_faults(name))
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        yield from _toleration_causes(f"{path}.tolerations[{index}]", toleration)
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        yield from _spread_causes(f"{path}.topologySpreadConstraints[{index}]", constraint)
    if affinity := spec.get("affinity"):
        yield from _affinity_causes(f"{path}.affinity", affinity)


def _label_causes(path: str, labels: JSON) -> Iterator[Cause]:
    for key, value in labels.items():
        yield from (invalid_value(path, key, fault) for fault in _key_faults(key))
        yield from (invalid_value(path, value, fault) for fault in label_value_faults(value or ""))


def _gate_causes(path: str, gates: Iterable[JSON]) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name = gate.get("name")
        if not name:
            yield required(f"{path}[{index}].name")
            continue
        yield from (invalid_value(f"{path}[{index}]", name, fault) for fault in _key_faults(name))
        if name in seen:
            yield duplicate_value(f"{path}[{index}]", name)
        seen.add(name)


def _toleration_causes(path: str, toleration: JSON) -> Iterator[Cause]:
    key, operator, effect = toleration.get("key"), toleration.get("operator"), toleration.get("effect")
    if key:
        yield from (invalid_value(f"{path}.key", key, fault) for fault in _key_faults(key))
    elif operator != "Exists":
        yield invalid_value(f"{path}.operator", operator, "must be Exists when `key` is empty, to match every taint")
    value = toleration.get("value") or ""
    if operator and operator not in _TOLERATION_OPERATORS:
        yield unsupported_value(f"{path}.operator", operator, _TOLERATION_OPERATORS)
    elif operator == "Exists" and value:
        yield invalid_value(f"{path}.operator", operator, "value must be empty when `operator` is 'Exists'")
    elif operator != "Exists":
        yield from (invalid_value(f"{path}.operator", value, fault) for fault in label_value_faults(value))
    if effect and effect not in _EFFECTS:
        yield unsupported_value(f"{path}.effect", effect, _EFFECTS)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        yield invalid_value(f"{path}.effect", effect, "must be 'NoExecute' when `tolerationSeconds` is set")


def _spread_causes(path: str, constraint: JSON) -> Iterator[Cause]:
    skew, key, otherwise = (constraint.get(name) for name in ("maxSkew", "topologyKey", "whenUnsatisfiable"))
    if not skew or skew < 0:
        yield invalid_value(f"{path}.maxSkew", skew or 0, "must be greater than zero")
    if not key:
        yield required(f"{path}.topologyKey", "can not be empty")
    else:
        yield from (invalid_value(f"{path}.topologyKey", key, fault) for fault in _key_faults(key))
    if otherwise not in _WHEN_UNSATISFIABLE:
        yield unsupported_value(f"{path}.whenUnsatisfiable", otherwise or "", _WHEN_UNSATISFIABLE)


def _affinity_causes(path: str, affinity: JSON) -> Iterator[Cause]:
    nodes = affinity.get("nodeAffinity") or {}
    needed = nodes.get(_NEEDED)
    if needed is not None:
        field = f"{path}.nodeAffinity.{_NEEDED}.nodeSelectorTerms"
        if not needed.get("nodeSelectorTerms"):
            yield required(field, "must have at least one node selector term")
        for index, term in enumerate(needed.get("nodeSelectorTerms") or ()):
            yield from _term_causes(f"{field}[{index}]", term)
    for index, wanted in enumerate(nodes.get(_WANTED) or ()):
        field = f"{path}.nodeAffinity.{_WANTED}[{index}]"
        yield from _weight_causes(field, wanted)
        yield from _term_causes(f"{field}.preference", wanted.get("preference") or {})
    for name in ("podAffinity", "podAntiAffinity"):
        pods = affinity.get(name) or {}
        for index, term in enumerate(pods.get(_NEEDED) or ()):
            yield from _topology_causes(f"{path}.{name}.{_NEEDED}[{index}]", term)
        for index, wanted in enumerate(pods.get(_WANTED) or ()):
            field = f"{path}.{name}.{_WANTED}[{index}]"
            yield from _weight_causes(field, wanted)
            yield from _topology_causes(f"{field}.podAffinityTerm", wanted.get("podAffinityTerm") or {})


def _weight_causes(path: str, wanted: JSON) -> Iterator[Cause]:
    if not 1 <= (wanted.get("weight") or 0) <= 100:
        yield invalid_value(f"{path}.weight", wanted.get("weight") or 0, "must be in the range 1-100")


def _topology_causes(path: str, term: JSON) -> Iterator[Cause]:
    key = term.get("topologyKey") or ""
    if not key:
        yield required(f"{path}.topologyKey", "can not be empty")
    yield from (invalid_value(f"{path}.topologyKey", key, fault) for fault in _key_faults(key))


def _term_causes(path: str, term: JSON) -> Iterator[Cause]:
    for field in ("matchExpressions", "matchFields"):
        for index, requirement in enumerate(term.get(field) or ()):
            where = f"{path}.{field}[{index}]"
            yield from _operator_causes(where, requirement.get("operator"), requirement.get("values") or [])
            if field == "matchExpressions":
                key = requirement.get("key") or ""
                yield from (invalid_value(f"{where}.key", key, fault) for fault in _key_faults(key))


def _operator_causes(path: str, operator: object, values: list[Any]) -> Iterator[Cause]:
    if operator in _WITH_VALUES:
        if not values:
            yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in _WITHOUT_VALUES:
        if values:
            yield forbidden_value(f"{path}.values", f"may not be specified when `operator` is {operator}")
    elif operator in _WITH_ONE_NUMBER:
        if len(values) != 1:
            yield required(f"{path}.values", f"must be a single value when `operator` is {operator}")
    else:
        yield invalid_value(f"{path}.operator", operator, "not a valid selector operator")

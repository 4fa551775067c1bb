"""The rules of what a pod says about where it may run, and what it is called there."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from spinney.api.field_error import FieldError, duplicate, forbidden, invalid, not_supported, required, too_long
from spinney.api.names import dns_label_faults, dns_subdomain_faults, label_value_faults, qualified_name_faults
from spinney.api.struct import JSON, objects

_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
TOLERATION_OPERATORS: Final = ("Equal", "Exists")
COMPARING_OPERATORS: Final = ("Lt", "Gt")  # where a feature gate of the cluster allows them
_WITH_VALUES: Final = ("In", "NotIn")
_WITH_ONE_NUMBER: Final = ("Gt", "Lt")
_WITHOUT_VALUES: Final = ("Exists", "DoesNotExist")
_WHEN_UNSATISFIABLE: Final = ("DoNotSchedule", "ScheduleAnyway")
_NEEDED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_WANTED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_key_faults = lru_cache(maxsize=4096)(qualified_name_faults)
_LONGEST_HOST_NAME: Final = 64  # what Linux has room for


def host_name_faults(spec: JSON, path: str) -> Iterator[FieldError]:
    """Yield what is wrong with the names that a pod is to have on the network."""
    for field in ("hostname", "subdomain"):
        if name := spec.get(field):
            yield from (invalid(f"{path}.{field}", name, fault) for fault in dns_label_faults(name))
    override = spec.get("hostnameOverride")
    if override is None:
        return
    field = f"{path}.hostnameOverride"
    if spec.get("hostNetwork"):
        yield forbidden(field, "may not be specified when hostNetwork is true")
    if spec.get("setHostnameAsFQDN"):
        yield forbidden(field, "may not be specified when setHostnameAsFQDN is true")
    if len(override) > _LONGEST_HOST_NAME:
        yield too_long(field, f"may not be more than {_LONGEST_HOST_NAME} bytes")
    yield from (invalid(field, override, fault) for fault in dns_subdomain_faults(override))


def placement_faults(spec: JSON, path: str, operators: tuple[str, ...]) -> Iterator[FieldError]:
    """Yield what is wrong with what a pod spec at ``path`` says to a scheduler; tolerations may use ``operators``."""
    yield from _label_faults(f"{path}.nodeSelector", spec.get("nodeSelector") or {})
    if node := spec.get("nodeName"):
        yield from (invalid(f"{path}.nodeName", node, fault) for fault in dns_subdomain_faults(node))
    yield from _gate_faults(f"{path}.schedulingGates", spec.get("schedulingGates"))
    if spec.get("schedulingGates") and node:
        yield forbidden(f"{path}.nodeName", "cannot be set until all schedulingGates have been cleared")
    if (group := spec.get("schedulingGroup")) is not None:
        field, name = f"{path}.schedulingGroup.podGroupName", group.get("podGroupName") or ""
        yield from (invalid(field, name, fault) for fault in dns_subdomain_faults(name))
    for index, toleration in enumerate(objects(spec.get("tolerations"))):
        yield from _toleration_faults(f"{path}.tolerations[{index}]", toleration, operators)
    for index, constraint in enumerate(objects(spec.get("topologySpreadConstraints"))):
        yield from _spread_faults(f"{path}.topologySpreadConstraints[{index}]", constraint)
    if affinity := spec.get("affinity"):
        yield from _affinity_faults(f"{path}.affinity", affinity)


def _label_faults(path: str, labels: JSON) -> Iterator[FieldError]:
    for key, value in labels.items():
        yield from (invalid(path, key, fault) for fault in _key_faults(key))
        yield from (invalid(path, value, fault) for fault in label_value_faults(value or ""))


def _gate_faults(path: str, gates: Any) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, gate in enumerate(objects(gates)):
        name = gate.get("name")
        if not name:
            yield required(f"{path}[{index}].name")
            continue
        yield from (invalid(f"{path}[{index}]", name, fault) for fault in _key_faults(name))
        if name in seen:
            yield duplicate(f"{path}[{index}]", name)
        seen.add(name)


def _toleration_faults(path: str, toleration: JSON, operators: tuple[str, ...]) -> Iterator[FieldError]:
    key, operator, effect = toleration.get("key"), toleration.get("operator"), toleration.get("effect")
    if key:
        yield from (invalid(f"{path}.key", key, fault) for fault in _key_faults(key))
    elif operator != "Exists":
        yield invalid(f"{path}.operator", operator, "must be Exists when `key` is empty, to match every taint")
    value = toleration.get("value") or ""
    if operator and operator not in operators:
        yield not_supported(f"{path}.operator", operator, operators)
    elif operator == "Exists" and value:
        yield invalid(f"{path}.operator", operator, "value must be empty when `operator` is 'Exists'")
    elif operator != "Exists":
        yield from (invalid(f"{path}.operator", value, fault) for fault in label_value_faults(value))
    if effect and effect not in _EFFECTS:
        yield not_supported(f"{path}.effect", effect, _EFFECTS)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        yield invalid(f"{path}.effect", effect, "must be 'NoExecute' when `tolerationSeconds` is set")


def _spread_faults(path: str, constraint: JSON) -> Iterator[FieldError]:
    skew, key, otherwise = (constraint.get(name) for name in ("maxSkew", "topologyKey", "whenUnsatisfiable"))
    if not skew or skew < 0:
        yield invalid(f"{path}.maxSkew", skew or 0, "must be greater than zero")
    if not key:
        yield required(f"{path}.topologyKey", "can not be empty")
    else:
        yield from (invalid(f"{path}.topologyKey", key, fault) for fault in _key_faults(key))
    if otherwise not in _WHEN_UNSATISFIABLE:
        yield not_supported(f"{path}.whenUnsatisfiable", otherwise or "", _WHEN_UNSATISFIABLE)


def _affinity_faults(path: str, affinity: JSON) -> Iterator[FieldError]:
    nodes = affinity.get("nodeAffinity") or {}
    needed = nodes.get(_NEEDED)
    if needed is not None:
        field = f"{path}.nodeAffinity.{_NEEDED}.nodeSelectorTerms"
        if not needed.get("nodeSelectorTerms"):
            yield required(field, "must have at least one node selector term")
        for index, term in enumerate(objects(needed.get("nodeSelectorTerms"))):
            yield from _term_faults(f"{field}[{index}]", term)
    for index, wanted in enumerate(objects(nodes.get(_WANTED))):
        field = f"{path}.nodeAffinity.{_WANTED}[{index}]"
        yield from _weight_faults(field, wanted)
        yield from _term_faults(f"{field}.preference", wanted.get("preference") or {})
    for name in ("podAffinity", "podAntiAffinity"):
        pods = affinity.get(name) or {}
        for index, term in enumerate(objects(pods.get(_NEEDED))):
            yield from _topology_faults(f"{path}.{name}.{_NEEDED}[{index}]", term)
        for index, wanted in enumerate(objects(pods.get(_WANTED))):
            field = f"{path}.{name}.{_WANTED}[{index}]"
            yield from _weight_faults(field, wanted)
            yield from _topology_faults(f"{field}.podAffinityTerm", wanted.get("podAffinityTerm") or {})


def _weight_faults(path: str, wanted: JSON) -> Iterator[FieldError]:
    if not 1 <= (wanted.get("weight") or 0) <= 100:
        yield invalid(f"{path}.weight", wanted.get("weight") or 0, "must be in the range 1-100")


def _topology_faults(path: str, term: JSON) -> Iterator[FieldError]:
    key = term.get("topologyKey") or ""
    if not key:
        yield required(f"{path}.topologyKey", "can not be empty")
    yield from (invalid(f"{path}.topologyKey", key, fault) for fault in _key_faults(key))


def _term_faults(path: str, term: JSON) -> Iterator[FieldError]:
    for field in ("matchExpressions", "matchFields"):
        for index, requirement in enumerate(objects(term.get(field))):
            where = f"{path}.{field}[{index}]"
            yield from _operator_faults(where, requirement.get("operator"), requirement.get("values") or [])
            if field == "matchExpressions":
                key = requirement.get("key") or ""
                yield from (invalid(f"{where}.key", key, fault) for fault in _key_faults(key))


def _operator_faults(path: str, operator: object, values: list[Any]) -> Iterator[FieldError]:
    if operator in _WITH_VALUES:
        if not values:
            yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in _WITHOUT_VALUES:
        if values:
            yield forbidden(f"{path}.values", f"may not be specified when `operator` is {operator}")
    elif operator in _WITH_ONE_NUMBER:
        if len(values) != 1:
            yield required(f"{path}.values", f"must be a single value when `operator` is {operator}")
    else:
        yield invalid(f"{path}.operator", operator, "not a valid selector operator")

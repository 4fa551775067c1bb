"""What is special about quotas and limit ranges: which resources they may name, and which bounds make sense.

That they are enforced is the matter of :mod:`spinney.server.quota` and :mod:`spinney.server.admission.limits`.
"""

from collections.abc import Iterator
from itertools import chain

from spinney.api.field_error import FieldError, duplicate, forbidden, invalid, required
from spinney.api.names import qualified_name_faults
from spinney.api.quantity import Quantity
from spinney.api.struct import JSON
from spinney.server.kinds.kind import Behaviour
from spinney.server.quota.amounts import amounts
from spinney.server.quota.usage import COMPUTE, is_extended

_COUNTED = frozenset(
    (
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    )
)
_OF_QUOTAS = frozenset(
    chain(_COUNTED, COMPUTE, (f"{field}.{name}" for field in ("requests", "limits") for name in COMPUTE))
)
_STANDARD = _OF_QUOTAS | {"requests.storage"}
_SCOPED_PODS = frozenset(
    ("pods", *(f"{field}{name}" for field in ("", "requests.", "limits.") for name in COMPUTE[:2]))
)
_SCOPES = {
    "Terminating": _SCOPED_PODS,
    "NotTerminating": _SCOPED_PODS,
    "NotBestEffort": _SCOPED_PODS,
    "PriorityClass": _SCOPED_PODS,
    "CrossNamespacePodAffinity": _SCOPED_PODS,
    "BestEffort": frozenset(("pods",)),
    "VolumeAttributesClass": frozenset(("persistentvolumeclaims", "requests.storage")),
}
_WITH_VALUES = ("PriorityClass", "VolumeAttributesClass")
_OPPOSITES = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))


class QuotaBehaviour(Behaviour):
    """A quota names resources that can be counted, in scopes that have them; its scopes never change."""

    def validate(self, obj: JSON, old: JSON | None, subresource: str) -> Iterator[FieldError]:
        if subresource == "status":
            status = obj.get("status") or {}
            yield from (
                cause for name in ("hard", "used") for cause in _faulty_amounts(status.get(name), f"status.{name}")
            )
            return
        spec = obj.get("spec") or {}
        yield from _faulty_amounts(spec.get("hard"), "spec.hard")
        yield from _faulty_scopes(spec)
        yield from _faulty_selector(spec)
        if old is not None and set(spec.get("scopes") or ()) != set((old.get("spec") or {}).get("scopes") or ()):
            yield invalid("spec.scopes", spec.get("scopes"), "field is immutable")


def _faulty_amounts(given: JSON | None, path: str) -> Iterator[FieldError]:
    for name, quantity in amounts(given).items():
        where = f"{path}[{name}]"
        yield from _faulty_name(name, where)
        if "/" not in name and name not in _STANDARD and not _is_huge(name):
            yield invalid(where, name, "must be a standard resource for quota")
        if quantity.nano < 0:
            yield invalid(where, str(quantity), "must be greater than or equal to 0")
        if (name in _COUNTED or _is_extended(name)) and quantity.milli % 1000:
            yield invalid(where, str(quantity), "must be an integer")


def _faulty_name(name: str, where: str) -> Iterator[FieldError]:
    faults = qualified_name_faults(name)
    yield from (invalid(where, name, fault) for fault in faults)
    if not faults and "/" not in name and name not in _STANDARD and name != "storage" and not _is_huge(name):
        yield invalid(where, name, "must be a standard resource type or fully qualified")


def _faulty_scopes(spec: JSON) -> Iterator[FieldError]:
    scopes, path = spec.get("scopes") or (), "spec.scopes"
    for scope in scopes:
        if scope not in _SCOPES:
            yield invalid(path, scopes, "unsupported scope")
        for _ in _out_of_scope(scope, spec):
            yield invalid(path, scopes, "unsupported scope applied to resource")
    for pair in _OPPOSITES:
        if set(pair) <= set(scopes):
            yield invalid(path, scopes, "conflicting scopes")


def _faulty_selector(spec: JSON) -> Iterator[FieldError]:
    selector, path = spec.get("scopeSelector") or {}, "spec.scopeSelector.matchExpressions"
    expressions = selector.get("matchExpressions") or ()
    for each in expressions:
        scope, operator, values = each.get("scopeName"), each.get("operator"), each.get("values") or ()
        if scope not in _SCOPES:
            yield invalid(f"{path}.scopeName", scope, "unsupported scope")
        for _ in _out_of_scope(scope, spec):
            yield invalid(path, selector, "unsupported scope applied to resource")
        if scope in _SCOPES and scope not in _WITH_VALUES and operator != "Exists":
            yield invalid(f"{path}.operator", operator, f"must be 'Exists' for the scope {scope}")
        if operator in {"In", "NotIn"}:
            if not values:
                yield required(f"{path}.values", "must be at least one value when `operator` is 'In' or 'NotIn'")
        elif operator not in {"Exists", "DoesNotExist"}:
            yield invalid(f"{path}.operator", operator, "not a valid selector operator")
        elif values:
            yield invalid(f"{path}.values", values, "must be no value when `operator` is 'Exists' or 'DoesNotExist'")
    for pair in _OPPOSITES:
        if set(pair) <= {each.get("scopeName") for each in expressions}:
            yield invalid(path, spec.get("scopes"), "conflicting scopes")


def _out_of_scope(scope: str, spec: JSON) -> Iterator[str]:
    """Return the resources of a quota that objects in a scope do not have."""
    for name in sorted(spec.get("hard") or {}):
        if (name in _STANDARD or _is_huge(name)) and name not in _SCOPES.get(scope, (name,)):
            yield name


class LimitRangeBehaviour(Behaviour):
    """Limits that say no more than a default or a maximum mean the other values, too; no bound contradicts another."""

    def fill_defaults(self, obj: JSON) -> None:
        for limit in (obj.get("spec") or {}).get("limits") or ():
            if limit.get("type") != "Container":
                continue
            highest, lowest = limit.get("max") or {}, limit.get("min") or {}
            default = {**highest, **(limit.get("default") or {})}
            request = {**lowest, **default, **(limit.get("defaultRequest") or {})}
            if default:
                limit["default"] = default
            if request:
                limit["defaultRequest"] = request

    def validate(self, obj: JSON, old: JSON | None, subresource: str) -> Iterator[FieldError]:
        seen: set[str] = set()
        for index, limit in enumerate((obj.get("spec") or {}).get("limits") or ()):
            path, kind = f"spec.limits[{index}]", limit.get("type") or ""
            yield from _faulty_type(kind, f"{path}.type")
            if kind in seen:
                yield duplicate(f"{path}.type", kind)
            seen.add(kind)
            yield from _faulty_limit(kind, limit, path)


def _faulty_type(kind: str, path: str) -> Iterator[FieldError]:
    faults = qualified_name_faults(kind)
    yield from (invalid(path, kind, fault) for fault in faults)
    if not faults and "/" not in kind and kind not in {"Pod", "Container", "PersistentVolumeClaim"}:
        yield invalid(path, kind, "must be a standard limit type or fully qualified")


def _faulty_limit(kind: str, limit: JSON, path: str) -> Iterator[FieldError]:
    bounds = {name: amounts(limit.get(name)) for name in ("max", "min", "default", "defaultRequest", _RATIO)}
    for field, given in bounds.items():
        if kind == "Pod" and field.startswith("default"):
            if given:
                yield forbidden(f"{path}.{field}", "may not be specified when `type` is 'Pod'")
            continue
        for name in given:
            yield from _faulty_bounded(kind, name, f"{path}.{field}[{name}]")
    if kind == "PersistentVolumeClaim" and not {"storage"} & {*bounds["min"], *bounds["max"]}:
        yield required(
            f"{path}.limits", "either minimum or maximum storage value is required, but neither was provided"
        )
    if kind == "Pod":
        bounds["default"] = bounds["defaultRequest"] = {}
    for name in dict.fromkeys(chain.from_iterable(bounds.values())):
        yield from _contradictions(name, {field: given[name] for field, given in bounds.items() if name in given}, path)


_RATIO = "maxLimitRequestRatio"
_ORDERED = (  # the first may not be more than the second; the third is the field that is blamed
    ("min", "max", "min"),
    ("min", "defaultRequest", "defaultRequest"),
    ("defaultRequest", "max", "defaultRequest"),
    ("defaultRequest", "default", "defaultRequest"),
    ("min", "default", "default"),
    ("default", "max", "default"),
)


def _contradictions(name: str, bounds: dict[str, Quantity], path: str) -> Iterator[FieldError]:
    for lower, upper, blamed in _ORDERED:
        if lower in bounds and upper in bounds and bounds[lower] > bounds[upper]:
            detail = f"{lower} value {bounds[lower]} is greater than {upper} value {bounds[upper]}"
            yield invalid(f"{path}.{blamed}[{name}]", str(bounds[blamed]), detail)
    ratio = bounds.get(_RATIO)
    if ratio is not None:
        where = f"{path}.{_RATIO}[{name}]"
        if ratio < Quantity.of(1):
            yield invalid(where, str(ratio), f"ratio {ratio} is less than 1")
        least, most = bounds.get("min"), bounds.get("max")
        if least and most is not None and ratio.nano * least.nano > most.nano * 10**9:
            yield invalid(where, str(ratio), f"ratio {ratio} is greater than max/min = {most.nano / least.nano:f}")
    default, request = bounds.get("default"), bounds.get("defaultRequest")
    strict = _is_huge(name) or _is_extended(name)
    if strict and default is not None and request is not None and default != request:
        detail = f"default value {default} must equal to defaultRequest value {request} in {name}"
        yield invalid(f"{path}.defaultRequest[{name}]", str(request), detail)


def _faulty_bounded(kind: str, name: str, where: str) -> Iterator[FieldError]:
    yield from _faulty_name(name, where)
    if kind in {"Pod", "Container"} and "/" not in name and name not in COMPUTE and not name.startswith("hugepages-"):
        yield invalid(where, name, "must be a standard resource for containers")


def _is_huge(name: str) -> bool:
    return name.startswith(("hugepages-", "requests.hugepages-"))


def _is_extended(name: str) -> bool:
    return is_extended(name) and not name.startswith("requests.")

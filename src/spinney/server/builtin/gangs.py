"""The rules of the native gang kinds, in each of the generations that Kubernetes has had.

1.35 has Workloads with inline groups; 1.36 adds PodGroups made from templates; 1.37 lets ``minCount`` change and
spells the disruption mode as an object. What is enforced here is what a client can run into: the union of policies,
counts, sizes, unique names, and which fields never change.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

from spinney.api.field_error import FieldError, duplicate, forbidden, immutable, invalid, required, too_many
from spinney.api.struct import JSON
from spinney.server.kinds.kind import Behaviour

_MOST_TEMPLATES = 8
_MOST_CLAIMS = 4


class PodGroupBehaviour(Behaviour):
    """PodGroups: one policy; everything is fixed but ``minCount``, and that too before 1.37."""

    count_field: ClassVar[str] = "minCount"

    def __init__(self, version: str) -> None:
        self._version = version

    def fill_defaults(self, obj: JSON) -> None:
        spec = obj.get("spec")
        if isinstance(spec, dict):
            spec.setdefault("disruptionMode", "Pod" if self._version == "v1alpha2" else {"single": {}})

    def validate(self, obj: JSON, old: JSON | None, subresource: str) -> list[FieldError]:
        if subresource:
            return []
        spec = obj.get("spec") or {}
        causes = policy_causes(spec.get("schedulingPolicy"), "spec.schedulingPolicy", self.count_field)
        causes += _topology_causes(spec.get("schedulingConstraints"))
        causes += _too_many(spec.get("resourceClaims"), "spec.resourceClaims", _MOST_CLAIMS)
        if old is not None and not causes:
            causes += self._changed(spec, old.get("spec") or {})
        return causes

    def _changed(self, spec: JSON, old: JSON) -> Iterator[FieldError]:
        for name in sorted((spec.keys() | old.keys()) - {"schedulingPolicy"}):
            yield from immutable(f"spec.{name}", spec.get(name), old.get(name))
        policy, before = spec.get("schedulingPolicy") or {}, old.get("schedulingPolicy") or {}
        if policy.keys() != before.keys():
            yield from (
                invalid(f"spec.schedulingPolicy.{name}", policy.get(name), "field is immutable")
                for name in sorted(policy.keys() | before.keys())
            )
        elif self._version == "v1alpha2":
            yield from immutable("spec.schedulingPolicy", policy, before)


class CompositePodGroupBehaviour(PodGroupBehaviour):
    """CompositePodGroups: as PodGroups, counting groups, made for a workload, and fixed altogether."""

    count_field: ClassVar[str] = "minGroupCount"

    def validate(self, obj: JSON, old: JSON | None, subresource: str) -> list[FieldError]:
        causes = super().validate(obj, old, subresource)
        spec = obj.get("spec") or {}
        if not subresource and not spec.get("workloadRef"):
            causes.append(required("spec.workloadRef"))
        if not subresource and old is not None and not causes:
            causes += immutable("spec", spec, old.get("spec") or {})
        return causes


class WorkloadBehaviour(Behaviour):
    """Workloads: one to eight groups with unique names; groups neither come nor go."""

    def __init__(self, version: str) -> None:
        self._groups = "podGroups" if version == "v1alpha1" else "podGroupTemplates"
        self._policy = "policy" if version == "v1alpha1" else "schedulingPolicy"
        self._counts_change = version in {"v1beta1", "v1alpha3"}

    def validate(self, obj: JSON, old: JSON | None, subresource: str) -> list[FieldError]:
        spec = obj.get("spec") or {}
        field = f"spec.{self._groups}"
        groups = spec.get(self._groups) or []
        composites = spec.get("compositePodGroupTemplates") or []
        causes: list[FieldError] = []
        if bool(groups) is bool(composites):
            detail = f"must have either {self._groups} or compositePodGroupTemplates"
            causes.append(required(field) if not self._counts_change else invalid("spec", spec, detail))
        causes += _too_many(groups, field, _MOST_TEMPLATES)
        seen: set[str] = set()
        for index, group in enumerate(groups):
            path = f"{field}[{index}]"
            name = group.get("name")
            if not name:
                causes.append(required(f"{path}.name"))
            elif name in seen:
                causes.append(duplicate(path, name))
            seen.add(name)
            causes += policy_causes(group.get(self._policy), f"{path}.{self._policy}", "minCount")
        if old is not None and not causes:
            causes += self._changed(spec, old.get("spec") or {})
        return causes

    def _changed(self, spec: JSON, old: JSON) -> Iterator[FieldError]:
        if old.get("controllerRef"):
            yield from immutable("spec.controllerRef", spec.get("controllerRef"), old["controllerRef"])
        field = f"spec.{self._groups}"
        groups, before = spec.get(self._groups) or [], old.get(self._groups) or []
        if not self._counts_change:
            yield from immutable(field, groups, before)
            return
        if [group.get("name") for group in groups] != [group.get("name") for group in before]:
            yield forbidden(field, "templates may neither be added nor removed")
        elif [_without_count(group) for group in groups] != [_without_count(group) for group in before]:
            yield invalid(field, groups, "only minCount may change")


def policy_causes(policy: Any, path: str, count_field: str) -> list[FieldError]:
    """Return what is wrong with a scheduling policy: it must be exactly one of basic and gang, with a count."""
    given = [name for name in ("basic", "gang") if isinstance(policy, dict) and policy.get(name) is not None]
    if len(given) != 1:
        return [invalid(path, policy, "must specify exactly one of: `basic`, `gang`")]
    if given == ["gang"]:
        count = policy["gang"].get(count_field)
        if not count:
            return [required(f"{path}.gang.{count_field}")]
        if not isinstance(count, int) or count < 1:
            return [invalid(f"{path}.gang.{count_field}", count, "must be greater than or equal to 1")]
    return []


def _topology_causes(constraints: Any) -> list[FieldError]:
    keys = constraints.get("topology") if isinstance(constraints, dict) else None
    return _too_many(keys, "spec.schedulingConstraints.topology", 1)


def _too_many(items: Any, path: str, most: int) -> list[FieldError]:
    if isinstance(items, list) and len(items) > most:
        return [too_many(path, len(items), most)]
    return []


def _without_count(group: JSON) -> JSON:
    policy = group.get("schedulingPolicy") or {}
    if isinstance(policy.get("gang"), dict):
        policy = {**policy, "gang": {name: value for name, value in policy["gang"].items() if name != "minCount"}}
    return {**group, "schedulingPolicy": policy}

"""What is special about roles and bindings: their rules must make sense, and a binding never changes its role."""

from collections.abc import Iterator
from typing import Any

from spinney.api.field_error import FieldError, forbidden, invalid, not_supported, required
from spinney.api.rbac import GROUP
from spinney.api.struct import JSON
from spinney.server.kinds.kind import Behaviour

_SUBJECTS = ("ServiceAccount", "User", "Group")


class RoleBehaviour(Behaviour):
    """Roles and cluster roles."""

    def validate(self, obj: JSON, old: JSON | None, subresource: str) -> Iterator[FieldError]:
        namespaced = obj.get("kind") == "Role"
        for index, rule in enumerate(obj.get("rules") or ()):
            yield from _rule_causes(rule, f"rules[{index}]", namespaced=namespaced)


class BindingBehaviour(Behaviour):
    """Bindings of roles; names of groups go without saying."""

    def fill_defaults(self, obj: JSON) -> None:
        reference = obj.get("roleRef")
        if isinstance(reference, dict):
            reference.setdefault("apiGroup", GROUP)
        for subject in obj.get("subjects") or ():
            if isinstance(subject, dict) and subject.get("kind") in {"User", "Group"}:
                subject.setdefault("apiGroup", GROUP)

    def validate(self, obj: JSON, old: JSON | None, subresource: str) -> list[FieldError]:
        reference = obj.get("roleRef") or {}
        kinds = ("Role", "ClusterRole") if obj.get("kind") == "RoleBinding" else ("ClusterRole",)
        causes: list[FieldError] = []
        if reference.get("apiGroup") not in {None, GROUP}:
            causes.append(not_supported("roleRef.apiGroup", reference.get("apiGroup"), (GROUP,)))
        if reference.get("kind", "") not in kinds:
            causes.append(not_supported("roleRef.kind", reference.get("kind", ""), kinds))
        if not reference.get("name"):
            causes.append(required("roleRef.name"))
        for index, subject in enumerate(obj.get("subjects") or ()):
            causes += _subject_causes(subject, f"subjects[{index}]", namespaced=obj.get("kind") == "RoleBinding")
        if old is not None and not causes and reference != old.get("roleRef"):
            causes.append(invalid("roleRef", reference, "cannot change roleRef"))
        return causes


def _rule_causes(rule: JSON, path: str, *, namespaced: bool) -> Iterator[FieldError]:
    if not rule.get("verbs"):
        yield required(f"{path}.verbs", "verbs must contain at least one value")
    if rule.get("nonResourceURLs"):
        if namespaced:
            detail = "namespaced rules cannot apply to non-resource URLs"
            yield invalid(f"{path}.nonResourceURLs", rule["nonResourceURLs"], detail)
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            detail = "rules cannot apply to both regular resources and non-resource URLs"
            yield invalid(f"{path}.nonResourceURLs", rule["nonResourceURLs"], detail)
        return
    for field, detail in (
        ("apiGroups", "resource rules must supply at least one api group"),
        ("resources", "resource rules must supply at least one resource"),
    ):
        if not rule.get(field):
            yield required(f"{path}.{field}", detail)


def _subject_causes(subject: Any, path: str, *, namespaced: bool) -> Iterator[FieldError]:
    if not subject.get("name"):
        yield required(f"{path}.name")
    kind = subject.get("kind", "")
    if kind not in _SUBJECTS:
        yield not_supported(f"{path}.kind", kind, _SUBJECTS)
    elif kind == "ServiceAccount":
        if subject.get("apiGroup"):
            yield not_supported(f"{path}.apiGroup", subject["apiGroup"], ("",))
        if not namespaced and not subject.get("namespace"):
            yield required(f"{path}.namespace")
    else:
        if subject.get("apiGroup") not in {None, GROUP}:
            yield not_supported(f"{path}.apiGroup", subject.get("apiGroup"), (GROUP,))
        if subject.get("namespace"):
            yield forbidden(f"{path}.namespace", "only service accounts have a namespace")

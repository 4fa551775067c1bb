"""Rules for the parts of a PodCliqueSet that are Kubernetes' own: pod specs, claim templates, metrics.

Our schema leaves them open, for a field that this version has never heard of must reach the pod. But what a field
cannot hold is refused by the API server when the object is made from it, long after the author has left, so it is
refused when it is written. A field that no Kubernetes we know has may come from a newer one, or be misspelt; then it
would be dropped without a word, so the author is told.
"""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from spinney.api.builtin_fields.misfits import UnknownField, WrongValue, misfits
from spinney.api.builtin_fields.table import field_table
from spinney.api.field_error import FieldError, FieldPath, invalid
from spinney.api.grove import AutoScalingConfig, PodCliqueSetTemplateSpec

NEWEST: Final = "1.37"
"""The release whose fields are known here; each has those of the releases before it."""

_TYPES: Final = {
    "podSpec": ("v1", "Pod", "spec"),
    "templateSpec": ("resource.k8s.io/v1", "ResourceClaimTemplate", "spec"),
    "autoscaler": ("autoscaling/v2", "HorizontalPodAutoscaler", "spec"),
}


@dataclass(frozen=True, slots=True)
class Carried:
    """A part that is carried as it came: where it stands, what it is, and what names it however the set is ordered."""

    path: FieldPath
    type: str
    owner: tuple[str, str]
    value: Any


def validate_carried(
    new: PodCliqueSetTemplateSpec, old: PodCliqueSetTemplateSpec | None, path: FieldPath
) -> list[FieldError]:
    """Check that every field holds what it can; parts that an update leaves alone are not looked at again."""
    return [
        invalid(found.path, _shown(found.value), f"must be {found.expected}")
        for part in _changed(new, old, path)
        for found in _misfits(part)
        if isinstance(found, WrongValue)
    ]


def carried_warnings(new: PodCliqueSetTemplateSpec, old: PodCliqueSetTemplateSpec | None, path: FieldPath) -> list[str]:
    """Return which fields no Kubernetes we know has, with the one that was probably meant."""
    return [
        f"{found.path}: unknown field{_hint(found)}"
        for part in _changed(new, old, path)
        for found in _misfits(part)
        if isinstance(found, UnknownField)
    ]


def _shown(value: Any) -> Any:
    """Return a value as a message has room for it."""
    return "an object" if isinstance(value, dict) else "a list" if isinstance(value, list) else value


def _hint(unknown: UnknownField) -> str:
    by_lower = {name.lower(): name for name in unknown.known}
    close = difflib.get_close_matches(unknown.name.lower(), by_lower, n=1)
    if close:
        return f"; did you mean {by_lower[close[0]]!r}?"
    return f": Kubernetes {NEWEST} has no such field here, and an API server that does not know it drops it"


def _misfits(part: Carried) -> Iterator[WrongValue | UnknownField]:
    table = field_table(NEWEST)
    api_version, kind, name = _TYPES[part.type]
    message = table.kind(api_version, kind)
    assert message is not None, f"the table of fields has {kind}"
    return misfits(table, message.by_name[name].type, part.value, part.path)


def _changed(new: PodCliqueSetTemplateSpec, old: PodCliqueSetTemplateSpec | None, path: FieldPath) -> Iterator[Carried]:
    before = {(part.type, part.owner): part.value for part in _carried(old, path)} if old is not None else {}
    return (part for part in _carried(new, path) if part.value != before.get((part.type, part.owner)))


def _carried(template: PodCliqueSetTemplateSpec, path: FieldPath) -> Iterator[Carried]:
    for i, clique in enumerate(template.cliques):
        where, owner = path.child("cliques").index(i).child("spec"), ("clique", clique.name)
        yield Carried(where.child("podSpec"), "podSpec", owner, clique.spec.pod_spec)
        yield from _metrics(clique.spec.auto_scaling_config, where.child("autoScalingConfig"), owner)
    for i, group in enumerate(template.pod_clique_scaling_groups):
        where = path.child("podCliqueScalingGroups").index(i).child("scaleConfig")
        yield from _metrics(group.scale_config, where, ("group", group.name))
    for i, claim in enumerate(template.resource_claim_templates):
        where = path.child("resourceClaimTemplates").index(i).child("templateSpec")
        yield Carried(where, "templateSpec", ("claim", claim.name), claim.template_spec)


def _metrics(config: AutoScalingConfig | None, path: FieldPath, owner: tuple[str, str]) -> Iterator[Carried]:
    if config is not None and config.metrics:
        yield Carried(path, "autoscaler", owner, {"metrics": list(config.metrics)})

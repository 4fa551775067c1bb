"""Rules for shared resource claims: the templates inside a PodCliqueSet, and who uses them at each level."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final

from spinney.api.field_error import (
    FieldError,
    FieldPath,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
)
from spinney.api.grove import PodCliqueSetTemplateSpec, ResourceClaimTemplateConfig, ResourceSharing
from spinney.api.schema.validate_metadata import validate_own_name

SCOPES: Final = ("AllReplicas", "PerReplica")


@dataclass(frozen=True, slots=True)
class _Level:
    """What a filter may name at the level a sharing entry stands on; ``None`` where it may not name that at all."""

    cliques: Collection[str] | None
    groups: Collection[str] | None


def validate_resource_sharing(template: PodCliqueSetTemplateSpec, path: FieldPath) -> Iterator[FieldError]:
    """Check the claim templates and the sharing entries of all three levels."""
    internal = {claim.name for claim in template.resource_claim_templates}
    yield from _templates(template.resource_claim_templates, path.child("resourceClaimTemplates"))
    whole = _Level(
        cliques=[clique.name for clique in template.cliques],
        groups=[group.name for group in template.pod_clique_scaling_groups],
    )
    yield from _entries(template.resource_sharing, path.child("resourceSharing"), internal, whole)
    for i, clique in enumerate(template.cliques):
        where = path.child("cliques").index(i).child("resourceSharing")
        yield from _entries(clique.resource_sharing, where, internal, _Level(None, None))
    for i, group in enumerate(template.pod_clique_scaling_groups):
        where = path.child("podCliqueScalingGroups").index(i).child("resourceSharing")
        yield from _entries(group.resource_sharing, where, internal, _Level(group.clique_names, None))


def _templates(templates: tuple[ResourceClaimTemplateConfig, ...], path: FieldPath) -> Iterator[FieldError]:
    seen: set[str] = set()
    for i, template in enumerate(templates):
        where = path.index(i)
        yield from validate_own_name(template.name, seen, where.child("name"), "a claim template needs a name")
        if not _device_requests(template.template_spec):
            yield required(
                where.child("templateSpec", "spec", "devices", "requests"), "at least one device request is needed"
            )


def _device_requests(template_spec: Any) -> bool:
    """Tell whether a claim template, which is JSON of Kubernetes' own kind, asks for any device."""
    for key in ("spec", "devices", "requests"):
        if not isinstance(template_spec, dict):
            return False
        template_spec = template_spec.get(key)
    return isinstance(template_spec, list) and bool(template_spec)


def _entries(
    entries: tuple[ResourceSharing, ...], path: FieldPath, internal: Collection[str], level: _Level
) -> Iterator[FieldError]:
    seen: set[str] = set()
    for i, entry in enumerate(entries):
        where = path.index(i)
        yield from validate_own_name(entry.name, seen, where.child("name"), "name the claim template to share")
        if entry.namespace and entry.name in internal:
            yield invalid(
                where.child("namespace"),
                entry.namespace,
                f"must be empty: {entry.name!r} is a template of this PodCliqueSet's resourceClaimTemplates",
            )
        if entry.scope not in SCOPES:
            yield not_supported(where.child("scope"), entry.scope, SCOPES)
        yield from _filter(entry, where.child("filter"), level)


def _filter(entry: ResourceSharing, path: FieldPath, level: _Level) -> Iterator[FieldError]:
    if entry.filter is None:
        return
    if level.cliques is None:
        yield forbidden(path, "a clique has no children to filter")
        return
    cliques, groups = entry.filter.child_clique_names, entry.filter.child_scaling_group_names
    if not cliques and not groups:
        yield required(path, "a filter must name at least one child; leave it out to share with all")
        return
    yield from _unknown(cliques, path.child("childCliqueNames"), level.cliques, "clique")
    if level.groups is None:
        if groups:
            yield forbidden(path.child("childScalingGroupNames"), "a scaling group has no groups inside")
        return
    yield from _unknown(groups, path.child("childScalingGroupNames"), level.groups, "scaling group")


def _unknown(names: tuple[str, ...], path: FieldPath, known: Collection[str], noun: str) -> list[FieldError]:
    return [
        not_found(path.index(i), name, f"no such {noun} at this level; there are: {', '.join(known) or 'none'}")
        for i, name in enumerate(names)
        if name not in known
    ]

"""Rules for the scaling groups of a PodCliqueSet."""

from collections.abc import Iterator

from spinney.api.field_error import FieldError, FieldPath, duplicate, not_found, required
from spinney.api.grove import PodCliqueScalingGroupConfig, PodCliqueSetTemplateSpec
from spinney.api.schema.validate_cliques import validate_auto_scaling, validate_replicas
from spinney.api.schema.validate_metadata import name_faults, validate_annotations, validate_own_name


def validate_scaling_groups(template: PodCliqueSetTemplateSpec, path: FieldPath) -> Iterator[FieldError]:
    """Check every scaling group, and that no clique is in two."""
    where = path.child("podCliqueScalingGroups")
    cliques = {clique.name for clique in template.cliques}
    names: set[str] = set()
    taken: dict[str, str] = {}
    for i, group in enumerate(template.pod_clique_scaling_groups):
        here = where.index(i)
        yield from validate_own_name(group.name, names, here.child("name"), "a scaling group needs a name")
        yield from _group(group, here)
        yield from _members(group, here.child("cliqueNames"), cliques, taken)


def _group(group: PodCliqueScalingGroupConfig, path: FieldPath) -> Iterator[FieldError]:
    if group.name:
        yield from name_faults(group.name, path.child("name"))
    yield from validate_annotations(group.annotations, path.child("annotations"))
    yield from validate_replicas(group.replicas, group.min_available, path)
    if group.scale_config is not None:
        yield from validate_auto_scaling(
            group.scale_config,
            path.child("scaleConfig"),
            replicas=group.replicas,
            min_available=group.min_available,
        )


def _members(
    group: PodCliqueScalingGroupConfig, path: FieldPath, cliques: set[str], taken: dict[str, str]
) -> Iterator[FieldError]:
    if not group.clique_names:
        yield required(path, "a scaling group needs at least one clique")
        return
    for k, name in enumerate(group.clique_names):
        if name not in cliques:
            yield not_found(path.index(k), name, "no such clique")
        elif name in taken:
            yield duplicate(path.index(k), name, f"the clique is already in scaling group {taken[name]!r}")
        taken.setdefault(name, group.name)

"""Rules for the scaling groups of a PodCliqueSet."""

from spinney.api.field_error import FieldError, FieldPath, duplicate, not_found, required
from spinney.api.grove import PodCliqueScalingGroupConfig, PodCliqueSetTemplateSpec
from spinney.api.schema.validate_cliques import validate_auto_scaling, validate_replicas
from spinney.api.schema.validate_metadata import name_faults, validate_annotations, validate_own_name


def validate_scaling_groups(template: PodCliqueSetTemplateSpec, path: FieldPath) -> list[FieldError]:
    """Check every scaling group, and that no clique is in two."""
    where = path.child("podCliqueScalingGroups")
    cliques = {clique.name for clique in template.cliques}
    errors: list[FieldError] = []
    names: set[str] = set()
    taken: dict[str, str] = {}
    for i, group in enumerate(template.pod_clique_scaling_groups):
        here = where.index(i)
        errors += validate_own_name(group.name, names, here.child("name"), "a scaling group needs a name")
        errors += _group(group, here)
        errors += _members(group, here.child("cliqueNames"), cliques, taken)
    return errors


def _group(group: PodCliqueScalingGroupConfig, path: FieldPath) -> list[FieldError]:
    errors = name_faults(group.name, path.child("name")) if group.name else []
    errors += validate_annotations(group.annotations, path.child("annotations"))
    errors += validate_replicas(group.replicas, group.min_available, path)
    if group.scale_config is not None:
        errors += validate_auto_scaling(
            group.scale_config,
            path.child("scaleConfig"),
            replicas=group.replicas,
            min_available=group.min_available,
        )
    return errors


def _members(
    group: PodCliqueScalingGroupConfig, path: FieldPath, cliques: set[str], taken: dict[str, str]
) -> list[FieldError]:
    if not group.clique_names:
        return [required(path, "a scaling group needs at least one clique")]
    errors = []
    for k, name in enumerate(group.clique_names):
        if name not in cliques:
            errors.append(not_found(path.index(k), name, "no such clique"))
        elif name in taken:
            errors.append(duplicate(path.index(k), name, f"the clique is already in scaling group {taken[name]!r}"))
        taken.setdefault(name, group.name)
    return errors

"""Rules for the scaling groups of a PodCliqueSet, and for the length of the names made from all parts."""

from typing import Final

from spinney.api.grove import PodCliqueScalingGroupConfig, PodCliqueSet, PodCliqueSetTemplateSpec
from spinney.api.schema.field_error import FieldError, FieldPath, duplicate, not_found, required, too_long
from spinney.api.schema.validate_cliques import validate_auto_scaling, validate_replicas
from spinney.api.schema.validate_metadata import name_faults, validate_annotations

# Pod names are made of set, group, clique, two indexes and a random suffix, and must stay below 63 characters.
NAME_BUDGET: Final = 45
_GENERATED_SUFFIX: Final = 5


def validate_scaling_groups(template: PodCliqueSetTemplateSpec, path: FieldPath) -> list[FieldError]:
    """Check every scaling group, and that no clique is in two."""
    where = path.child("podCliqueScalingGroups")
    cliques = {clique.name for clique in template.cliques}
    errors: list[FieldError] = []
    names: set[str] = set()
    taken: dict[str, str] = {}
    for i, group in enumerate(template.pod_clique_scaling_groups):
        here = where.index(i)
        if not group.name:
            errors.append(required(here.child("name"), "a scaling group needs a name"))
        elif group.name in names:
            errors.append(duplicate(here.child("name"), group.name))
        names.add(group.name)
        errors += _group(group, here)
        errors += _members(group, here.child("cliqueNames"), cliques, taken)
    return errors


def validate_name_budget(pcs: PodCliqueSet) -> list[FieldError]:
    """Check that the names the operator will make fit; each field that contributes to one that does not is named."""
    metadata, template = pcs.metadata, pcs.spec.template
    length = len(metadata.name) or len(metadata.generate_name or "") + _GENERATED_SUFFIX
    name_path = FieldPath("metadata.name" if metadata.name else "metadata.generateName")
    groups_path, cliques_path = (FieldPath("spec.template").child(n) for n in ("podCliqueScalingGroups", "cliques"))
    positions = {clique.name: i for i, clique in enumerate(template.cliques)}
    errors = []
    members: set[str] = set()
    for i, group in enumerate(template.pod_clique_scaling_groups):
        for name in group.clique_names:
            members.add(name)
            if name in positions and length + len(group.name) + len(name) > NAME_BUDGET:
                total = length + len(group.name) + len(name)
                message = f"set, scaling group {group.name!r} and clique {name!r} together have {total} characters"
                paths = (
                    name_path,
                    groups_path.index(i).child("name"),
                    cliques_path.index(positions[name]).child("name"),
                )
                errors += [too_long(path, total, f"{message}, may have {NAME_BUDGET}") for path in paths]
    for i, clique in enumerate(template.cliques):
        total = length + len(clique.name)
        if clique.name not in members and total > NAME_BUDGET:
            message = f"set and clique {clique.name!r} together have {total} characters, may have {NAME_BUDGET}"
            errors += [too_long(path, total, message) for path in (name_path, cliques_path.index(i).child("name"))]
    return list(dict.fromkeys(errors))


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

"""What of a PodCliqueSet cannot change once it exists.

Cliques and scaling groups are compared by name, so that reordering them (where allowed) is no change of each.
"""

from collections.abc import Iterator

from spinney.api.field_error import FieldError, FieldPath, forbidden, immutable, invalid
from spinney.api.grove import (
    EXPLICIT,
    IN_ORDER,
    PodCliqueScalingGroupConfig,
    PodCliqueSet,
    PodCliqueSetTemplateSpec,
    PodCliqueTemplateSpec,
)
from spinney.api.labels import MNNVL_GROUP
from spinney.api.schema.validate_pod_spec import scheduler_name


def validate_immutability(
    new: PodCliqueSetTemplateSpec, old: PodCliqueSetTemplateSpec, path: FieldPath
) -> Iterator[FieldError]:
    """Check that an update leaves alone what it must."""
    yield from immutable(path.child("cliqueStartupType"), new.clique_startup_type, old.clique_startup_type)
    yield from immutable(
        path.child("resourceClaimTemplates"), new.resource_claim_templates, old.resource_claim_templates
    )
    yield from immutable(path.child("resourceSharing"), new.resource_sharing, old.resource_sharing)
    yield from _cliques(new, old, path.child("cliques"))
    yield from _groups(new, old, path.child("podCliqueScalingGroups"))


def kept_replicas(new: PodCliqueSet, old: PodCliqueSet) -> Iterator[str]:
    """Return the changes of replicas in the template that do nothing to what exists, each with what to do instead.

    As in Grove, ``replicas`` of a PodClique or scaling group belongs to the autoscaler or user that scales it once it
    exists.
    """
    if not old.spec.replicas:
        return
    path, template, former = FieldPath("spec.template"), new.spec.template, old.spec.template
    stem = f"{new.metadata.name}-0-"
    homes = {name: f"{group.name}-0-" for group in template.pod_clique_scaling_groups for name in group.clique_names}
    sizes = {clique.name: clique.spec.replicas for clique in former.cliques}
    for i, clique in enumerate(template.cliques):
        where = path.child("cliques").index(i).child("spec", "replicas")
        example = f"podclique {stem}{homes.get(clique.name, '')}{clique.name}"
        yield from _kept(where, sizes.get(clique.name), clique.spec.replicas, example)
    sizes = {group.name: group.replicas for group in former.pod_clique_scaling_groups}
    for i, group in enumerate(template.pod_clique_scaling_groups):
        where = path.child("podCliqueScalingGroups").index(i).child("replicas")
        example = f"podcliquescalinggroup {stem}{group.name}"
        yield from _kept(where, sizes.get(group.name), group.replicas, example)


def _kept(where: FieldPath, before: int | None, after: int | None, example: str) -> list[str]:
    if before is None or after is None or before == after:
        return []
    return [
        f"{where}: the change from {before} to {after} counts for what is made from now on; what exists keeps its "
        f"size, scale it itself: kubectl scale {example} --replicas={after}"
    ]


def _cliques(new: PodCliqueSetTemplateSpec, old: PodCliqueSetTemplateSpec, path: FieldPath) -> list[FieldError]:
    names, former = [c.name for c in new.cliques], [c.name for c in old.cliques]
    errors = _same_set(names, former, path, "cliques")
    if not errors and names != former and old.clique_startup_type in {IN_ORDER, EXPLICIT}:
        errors.append(invalid(path, names, f"the order of cliques cannot change with {old.clique_startup_type}"))
    before = {clique.name: clique for clique in old.cliques}
    for i, clique in enumerate(new.cliques):
        if clique.name in before:
            errors += _clique(clique, before[clique.name], path.index(i))
    return errors


def _clique(new: PodCliqueTemplateSpec, old: PodCliqueTemplateSpec, path: FieldPath) -> Iterator[FieldError]:
    spec = path.child("spec")
    yield from immutable(spec.child("roleName"), new.spec.role_name, old.spec.role_name)
    yield from immutable(spec.child("minAvailable"), new.spec.min_available, old.spec.min_available)
    yield from immutable(spec.child("startsAfter"), new.spec.starts_after, old.spec.starts_after)
    yield from immutable(
        spec.child("podSpec", "schedulerName"), scheduler_name(new.spec.pod_spec), scheduler_name(old.spec.pod_spec)
    )
    yield from immutable(path.child("resourceSharing"), new.resource_sharing, old.resource_sharing)
    where = path.child("annotations").key(MNNVL_GROUP)
    yield from immutable(where, new.annotations.get(MNNVL_GROUP), old.annotations.get(MNNVL_GROUP))


def _groups(new: PodCliqueSetTemplateSpec, old: PodCliqueSetTemplateSpec, path: FieldPath) -> Iterator[FieldError]:
    groups, former = new.pod_clique_scaling_groups, old.pod_clique_scaling_groups
    yield from _same_set([g.name for g in groups], [g.name for g in former], path, "scaling groups")
    before = {group.name: group for group in former}
    for i, group in enumerate(groups):
        if group.name in before:
            yield from _group(group, before[group.name], path.index(i))


def _group(new: PodCliqueScalingGroupConfig, old: PodCliqueScalingGroupConfig, path: FieldPath) -> Iterator[FieldError]:
    yield from immutable(path.child("cliqueNames"), new.clique_names, old.clique_names)
    yield from immutable(path.child("minAvailable"), new.min_available, old.min_available)
    yield from immutable(path.child("resourceSharing"), new.resource_sharing, old.resource_sharing)
    where = path.child("annotations").key(MNNVL_GROUP)
    yield from immutable(where, new.annotations.get(MNNVL_GROUP), old.annotations.get(MNNVL_GROUP))


def _same_set(names: list[str], former: list[str], path: FieldPath, noun: str) -> list[FieldError]:
    added = sorted(set(names) - set(former))
    removed = sorted(set(former) - set(names))
    if not added and not removed:
        return []
    changes = [f"{verb} {', '.join(which)}" for verb, which in (("added", added), ("removed", removed)) if which]
    return [forbidden(path, f"{noun} cannot be added, removed or renamed: {'; '.join(changes)}")]

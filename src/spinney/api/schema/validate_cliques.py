"""Rules for the cliques and scaling groups of a PodCliqueSet: names, sizes, start-up order and autoscaling."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from spinney.api.field_error import FieldError, FieldPath, duplicate, invalid, not_found, required
from spinney.api.grove import (
    EXPLICIT,
    AutoScalingConfig,
    PodCliqueScalingGroupConfig,
    PodCliqueSetTemplateSpec,
    PodCliqueTemplateSpec,
)
from spinney.api.schema.validate_metadata import name_faults, validate_annotations, validate_labels, validate_own_name
from spinney.api.schema.validate_metrics import validate_metrics
from spinney.api.schema.validate_pod_spec import validate_pod_spec

MAX_INT32: Final = 2**31 - 1


def validate_cliques(
    template: PodCliqueSetTemplateSpec, path: FieldPath, *, old: PodCliqueSetTemplateSpec | None
) -> Iterator[FieldError]:
    """Check every clique, as created or as an update of ``old``, and what holds between them."""
    where = path.child("cliques")
    if not template.cliques:
        yield required(where, "at least one clique is needed")
        return
    members = {name for group in template.pod_clique_scaling_groups for name in group.clique_names}
    former = {clique.name: clique.spec.pod_spec for clique in old.cliques} if old is not None else {}
    yield from _unique(template.cliques, where)
    for i, clique in enumerate(template.cliques):
        yield from _clique(clique, where.index(i), member=clique.name in members)
        pod_spec_path = where.index(i).child("spec", "podSpec")
        yield from validate_pod_spec(clique.spec.pod_spec, pod_spec_path, former=former.get(clique.name))
    if template.clique_startup_type == EXPLICIT:
        yield from _starts_after(template.cliques, where)


def validate_replicas(replicas: int | None, min_available: int | None, path: FieldPath) -> Iterator[FieldError]:
    """Check a number of replicas and how few of them will do."""
    if replicas is None or replicas <= 0:
        yield invalid(path.child("replicas"), replicas, "must be greater than 0")
    elif replicas > MAX_INT32:
        yield invalid(path.child("replicas"), replicas, f"must be at most {MAX_INT32}")
    if min_available is None:
        yield required(path.child("minAvailable"), "minAvailable is needed")
    elif min_available <= 0:
        yield invalid(path.child("minAvailable"), min_available, "must be greater than 0")
    elif replicas is not None and min_available > replicas:
        yield invalid(path.child("minAvailable"), min_available, f"must not be greater than replicas ({replicas})")


def validate_auto_scaling(
    config: AutoScalingConfig, path: FieldPath, *, replicas: int | None, min_available: int | None
) -> Iterator[FieldError]:
    """Check the bounds of an autoscaler against each other and against what it scales, and its metrics."""
    low, high = config.min_replicas, config.max_replicas
    if low is not None and min_available is not None and low < min_available:
        yield invalid(path.child("minReplicas"), low, f"must be at least minAvailable ({min_available})")
    if low is not None and high < low:
        yield invalid(path.child("maxReplicas"), high, f"must be at least minReplicas ({low})")
    if replicas is not None and high < replicas:
        yield invalid(path.child("maxReplicas"), high, f"must be at least replicas ({replicas})")
    yield from validate_metrics(config.metrics, path.child("metrics"))


def _clique(clique: PodCliqueTemplateSpec, path: FieldPath, *, member: bool) -> Iterator[FieldError]:
    if clique.name:
        yield from name_faults(clique.name, path.child("name"))
    else:
        yield required(path.child("name"), "a clique needs a name")
    yield from validate_labels(clique.labels, path.child("labels"))
    yield from validate_annotations(clique.annotations, path.child("annotations"))
    spec, where = clique.spec, path.child("spec")
    yield from validate_replicas(spec.replicas, spec.min_available, where)
    if spec.auto_scaling_config is not None:
        scaling = where.child("autoScalingConfig")
        if member:
            yield invalid(
                scaling, clique.name, "must not be set on a member of a scaling group: scale the group instead"
            )
        yield from validate_auto_scaling(
            spec.auto_scaling_config, scaling, replicas=spec.replicas, min_available=spec.min_available
        )


def _unique(cliques: Sequence[PodCliqueTemplateSpec], path: FieldPath) -> Iterator[FieldError]:
    names: set[str] = set()
    roles: set[str] = set()
    for i, clique in enumerate(cliques):
        if clique.name and clique.name in names:
            yield duplicate(path.index(i).child("name"), clique.name)
        # A role left out is no role, so several cliques may leave it out.
        role = clique.spec.role_name
        if role and role in roles:
            yield duplicate(path.index(i).child("spec", "roleName"), role)
        names.add(clique.name)
        roles.add(role)


def _starts_after(cliques: Sequence[PodCliqueTemplateSpec], path: FieldPath) -> Iterator[FieldError]:
    names = {clique.name for clique in cliques}
    for i, clique in enumerate(cliques):
        seen: set[str] = set()
        for k, parent in enumerate(clique.spec.starts_after):
            where = path.index(i).child("spec", "startsAfter").index(k)
            if not parent:
                yield required(where, "name a clique")
            elif parent == clique.name:
                yield invalid(where, parent, "a clique cannot start after itself")
            elif parent in seen:
                yield duplicate(where, parent)
            elif parent not in names:
                yield not_found(where, parent, "no such clique")
            seen.add(parent)
    after = {clique.name: clique.spec.starts_after for clique in cliques}
    yield from (invalid(path, " -> ".join(cycle), "cliques wait for each other in a circle") for cycle in cycles(after))


def cycles(after: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Return each circle of names that wait for each other, closed (``a b a``); a name waiting for itself is none.

    One circle is reported per group of names that reach each other, found by following each name's way back to it.
    """
    found: list[list[str]] = []
    reported: set[str] = set()
    for name in after:
        if name in reported:
            continue
        way = _way_back(name, after)
        if way is not None:
            found.append(way)
            reported.update(n for n in after if _reaches(name, n, after) and _reaches(n, name, after))
    return found


def _way_back(start: str, after: Mapping[str, Sequence[str]]) -> list[str] | None:
    """Return the shortest way from ``start`` back to it over at least one other name, breadth first."""
    ways = [[start, parent] for parent in after[start] if parent != start and parent in after]
    visited: set[str] = set()
    for way in ways:
        if way[-1] in visited:
            continue
        visited.add(way[-1])
        for parent in after[way[-1]]:
            if parent == start:
                return [*way, start]
            if parent in after:
                ways.append([*way, parent])
    return None


def _reaches(start: str, goal: str, after: Mapping[str, Sequence[str]]) -> bool:
    stack, visited = [start], {start}
    while stack:
        for parent in after.get(stack.pop(), ()):
            if parent == goal:
                return True
            if parent not in visited:
                visited.add(parent)
                stack.append(parent)
    return False


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

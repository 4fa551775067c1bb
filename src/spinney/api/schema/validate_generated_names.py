"""Rules for the names that are made from those a user chooses.

The operator makes names by joining: ``set-0-group-1-clique`` is a PodClique, and with an index the host name of a pod.
So the parts must be short enough together, each must do as a piece of a host name, and no two ways of joining may come
to the same name. A pod that waits for others also gets an init container and volumes whose names are taken.

Only the length is looked at when a set changes, too: names cannot change, and what has them exists.
"""

import re
from collections.abc import Iterator
from typing import Final

from spinney.api import labels as marks
from spinney.api.field_error import FieldError, FieldPath, duplicate, invalid, too_long
from spinney.api.grove import EXPLICIT, IN_ORDER, PodCliqueSet, PodCliqueSetTemplateSpec, ResourceSharing
from spinney.api.names import MAX_LABEL, dns_label_faults
from spinney.api.struct import JSON, objects

# Pod names are made of set, group, clique, two indexes and a random suffix, and must stay below 63 characters.
NAME_BUDGET: Final = 45
_GENERATED_SUFFIX: Final = 5
_INDEX: Final = re.compile("0|[1-9][0-9]*")

_TEMPLATE: Final = FieldPath("spec.template")
_CLIQUES: Final = _TEMPLATE.child("cliques")
_GROUPS: Final = _TEMPLATE.child("podCliqueScalingGroups")


def validate_generated_names(pcs: PodCliqueSet) -> list[FieldError]:
    """Check a new set: its parts make host names, every name is made once, and claims have names a pod can use."""
    return [*_hosts(pcs), *_collisions(pcs.spec.template), *_claims(pcs)]


def validate_name_budget(pcs: PodCliqueSet) -> list[FieldError]:
    """Check that the names the operator will make fit; each field that contributes to one that does not is named."""
    template, length, name_path = pcs.spec.template, _length(pcs), _name_path(pcs)
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
                    _GROUPS.index(i).child("name"),
                    _CLIQUES.index(positions[name]).child("name"),
                )
                errors += [too_long(path, f"{message}, may have {NAME_BUDGET}") for path in paths]
    for i, clique in enumerate(template.cliques):
        total = length + len(clique.name)
        if clique.name not in members and total > NAME_BUDGET:
            message = f"set and clique {clique.name!r} together have {total} characters, may have {NAME_BUDGET}"
            errors += [too_long(path, message) for path in (name_path, _CLIQUES.index(i).child("name"))]
    return list(dict.fromkeys(errors))


def validate_reserved_names(
    template: PodCliqueSetTemplateSpec, old: PodCliqueSetTemplateSpec | None
) -> Iterator[FieldError]:
    """Check that pods which wait for others leave free the names of what they wait with."""
    former = {clique.name: clique.spec.pod_spec for clique in old.cliques} if old is not None else {}
    for i, clique in enumerate(template.cliques):
        in_order = template.clique_startup_type == IN_ORDER and i > 0
        explicit = template.clique_startup_type == EXPLICIT and bool(clique.spec.starts_after)
        if (in_order or explicit) and clique.spec.pod_spec != former.get(clique.name):
            yield from _reserved(clique.spec.pod_spec, _CLIQUES.index(i).child("spec", "podSpec"))


def _length(pcs: PodCliqueSet) -> int:
    metadata = pcs.metadata
    return len(metadata.name) or len(metadata.generate_name or "") + _GENERATED_SUFFIX


def _name_path(pcs: PodCliqueSet) -> FieldPath:
    return FieldPath("metadata.name" if pcs.metadata.name else "metadata.generateName")


def _hosts(pcs: PodCliqueSet) -> Iterator[FieldError]:
    """Check that every part may stand in a host name; what is no object name at all is reported elsewhere."""
    template = pcs.spec.template
    own = pcs.metadata.name or (pcs.metadata.generate_name or "").removesuffix("-")
    parts = [(_name_path(pcs), own)]
    parts += [(_CLIQUES.index(i).child("name"), clique.name) for i, clique in enumerate(template.cliques)]
    groups = template.pod_clique_scaling_groups
    parts += [(_GROUPS.index(i).child("name"), group.name) for i, group in enumerate(groups)]
    for path, name in parts:
        if "." in name:
            yield invalid(path, name, "must not contain '.': it is part of the host names of pods")


def _collisions(template: PodCliqueSetTemplateSpec) -> Iterator[FieldError]:
    """Find names that two parts of a set would both have, at whatever index.

    Each name is taken apart and its pieces are looked up: a set may have thousands of cliques, and comparing each with
    each would keep the operator busy for minutes.
    """
    groups = {group.name: group for group in template.pod_clique_scaling_groups}
    positions = {clique.name: i for i, clique in enumerate(template.cliques)}
    grouped = {clique for group in groups.values() for clique in group.clique_names}
    for name, i in positions.items():
        if name in grouped:
            continue
        where = _CLIQUES.index(i).child("name")
        for group, clique in _around_an_index(name):
            if group in groups and clique in groups[group].clique_names:
                text = f"its PodClique would be called as those of clique {clique!r} in scaling group {group!r}"
                yield duplicate(where, name, text)
            if clique == "" and group in groups and groups[group].topology_constraint:
                yield duplicate(where, name, f"a replica of scaling group {group!r} would be called the same")
        autoscaled = template.cliques[i].spec.auto_scaling_config is not None
        if autoscaled and name in groups and groups[name].scale_config is not None:
            yield duplicate(where, name, f"its autoscaler would be called as that of scaling group {name!r}")
    for inner in groups.values():
        for outer, rest in _around_an_index(inner.name):
            if outer not in groups:
                continue
            begun = f"{rest}-" if rest else ""
            for one in groups[outer].clique_names:
                index, _, other = one.removeprefix(begun).partition("-")
                if one.startswith(begun) and _INDEX.fullmatch(index) and other in inner.clique_names:
                    called = f"its PodClique would be called as that of {other!r} in {inner.name!r}"
                    where = _CLIQUES.index(positions.get(one, 0)).child("name")
                    yield duplicate(where, one, f"in scaling group {outer!r}, {called}")


def _around_an_index(name: str) -> Iterator[tuple[str, str]]:
    """Yield what stands before and after each part of a name that is an index; after it may be nothing."""
    parts = name.split("-")
    for i in range(1, len(parts)):
        if _INDEX.fullmatch(parts[i]):
            yield "-".join(parts[:i]), "-".join(parts[i + 1 :])


def _claims(pcs: PodCliqueSet) -> Iterator[FieldError]:
    """Check that the name of each shared claim, with its lowest index, may stand in a pod."""
    template, stem = pcs.spec.template, "x" * _length(pcs)
    groups_of = {name: group.name for group in template.pod_clique_scaling_groups for name in group.clique_names}
    yield from _claims_of(stem, template.resource_sharing, _TEMPLATE)
    for i, group in enumerate(template.pod_clique_scaling_groups):
        yield from _claims_of(f"{stem}-0-{group.name}", group.resource_sharing, _GROUPS.index(i))
    for i, clique in enumerate(template.cliques):
        within = f"{groups_of[clique.name]}-0-" if clique.name in groups_of else ""
        yield from _claims_of(f"{stem}-0-{within}{clique.name}", clique.resource_sharing, _CLIQUES.index(i))


def _claims_of(owner: str, sharers: tuple[ResourceSharing, ...], path: FieldPath) -> Iterator[FieldError]:
    for i, sharer in enumerate(sharers):
        where = path.child("resourceSharing").index(i).child("name")
        total = len(owner) + len("-all-" if sharer.scope == "AllReplicas" else "-0-") + len(sharer.name)
        if sharer.name and total > MAX_LABEL:
            yield too_long(where, f"the claim's name would have {total} characters, may have {MAX_LABEL}")
        elif sharer.name:
            yield from (invalid(where, sharer.name, fault) for fault in dns_label_faults(sharer.name))


def _reserved(pod_spec: JSON, path: FieldPath) -> Iterator[FieldError]:
    taken = {
        "initContainers": (marks.INIT_CONTAINER,),
        "containers": (marks.INIT_CONTAINER,),
        "volumes": (marks.TOKEN_VOLUME, marks.POD_INFO_VOLUME),
    }
    for kind, names in taken.items():
        for i, item in enumerate(objects(pod_spec.get(kind))):
            if item.get("name") in names:
                where = path.child(kind).index(i).child("name")
                yield invalid(where, item["name"], "is the name of what the pod waits with for those it starts after")

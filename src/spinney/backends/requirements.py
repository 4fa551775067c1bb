"""What a PodCliqueSet asks of its scheduler, found once for every backend's ``validate_pod_clique_set``."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from spinney.api import labels as marks
from spinney.api.grove import PodCliqueSet, PodCliqueTemplateSpec
from spinney.api.podgang import PodGang
from spinney.api.struct import JSON
from spinney.api.topology_constraint import TopologyConstraint
from spinney.backends.interface import Degradation, Rejected

Level = Literal["set", "group", "clique"]


@dataclass(frozen=True)
class TopologyRequirement:
    """One topology constraint: where it stands, at which level, and what it asks for."""

    path: str
    level: Level
    required: str | None
    preferred: str | None


def topology_requirements(pcs: PodCliqueSet) -> list[TopologyRequirement]:
    """Return every topology constraint of a set."""
    template = pcs.spec.template
    groups, cliques = enumerate(template.pod_clique_scaling_groups), enumerate(template.cliques)
    found = [
        _wish("spec.template", "set", template.topology_constraint),
        *(_wish(f"spec.template.podCliqueScalingGroups[{n}]", "group", g.topology_constraint) for n, g in groups),
        *(_wish(f"spec.template.cliques[{n}]", "clique", c.topology_constraint) for n, c in cliques),
    ]
    return [requirement for requirement in found if requirement is not None]


def reject_required_topology(pcs: PodCliqueSet, why: str) -> None:
    """Reject a set that requires a topology domain; preferring one is another matter."""
    for requirement in topology_requirements(pcs):
        if requirement.required is not None:
            raise Rejected(f"topology domain {requirement.required!r} is required, {why}", path=requirement.path)


def preferences_lost(pcs: PodCliqueSet) -> list[Degradation]:
    """Return what is lost where preferred topology domains are not taken into account."""
    return [
        Degradation(
            "preferred_topology", f"domain {requirement.preferred!r} is not taken into account ({requirement.path})"
        )
        for requirement in topology_requirements(pcs)
        if requirement.preferred is not None
    ]


def between_gangs(pcs: PodCliqueSet) -> list[Degradation]:
    """Return what is lost where each gang is confined by itself: one domain for all gangs of a replica."""
    if not pcs.spec.template.pod_clique_scaling_groups:
        return []
    return [
        Degradation(
            "required_topology",
            f"domain {requirement.required!r} holds each gang of a replica, and may differ between its base gang and "
            "the gangs of further scaling group replicas",
        )
        for requirement in topology_requirements(pcs)
        if requirement.level == "set" and requirement.required is not None
    ]


def goes_beyond_minimum(clique: PodCliqueTemplateSpec) -> bool:
    """Tell whether a clique has, or can be scaled to, more pods than its minimum."""
    spec = clique.spec
    return spec.auto_scaling_config is not None or spec.minimum < (spec.replicas or 1)


def priority_of(pcs: PodCliqueSet, clique: PodCliqueTemplateSpec) -> tuple[str, str]:
    """Return the priority class and the preemption policy that pods of a clique will have."""
    spec = clique.spec.pod_spec
    name = spec.get("priorityClassName") or pcs.spec.template.priority_class_name or ""
    return name, spec.get("preemptionPolicy") or ""


def pod_spec_of(group: str, gang: PodGang, pcs: PodCliqueSet) -> JSON | None:
    """Return the pod spec from which the pods of a gang's group are made."""
    template = pcs.spec.template
    stem = f"{pcs.metadata.name}-{gang.metadata.labels.get(marks.REPLICA_INDEX)}-"
    homes = {clique: each.name for each in template.pod_clique_scaling_groups for clique in each.clique_names}
    for clique in template.cliques:
        home = homes.get(clique.name)
        if home is None:
            matches = group == f"{stem}{clique.name}"
        else:
            index, _, name = group.removeprefix(f"{stem}{home}-").partition("-")
            matches = group.startswith(f"{stem}{home}-") and index.isdecimal() and name == clique.name
        if matches:
            return clique.spec.pod_spec
    return None


def queue_of(pcs: PodCliqueSet, key: str, *, label: bool) -> str | None:
    """Return the one queue a set names, on itself or on its cliques; raises :class:`Rejected` where they disagree.

    ``label`` says that a label of that key counts, and before an annotation.
    """

    def named(labels: Mapping[str, str], annotations: Mapping[str, str]) -> str | None:
        return (labels.get(key) if label else None) or annotations.get(key)

    queue = named(pcs.metadata.labels, pcs.metadata.annotations)
    for index, clique in enumerate(pcs.spec.template.cliques):
        own = named(clique.labels, clique.annotations)
        if own is None:
            continue
        if queue is not None and own != queue:
            raise Rejected(
                f"clique {clique.name!r} names queue {own!r} and the rest {queue!r}; a set has one queue ({key})",
                path=f"spec.template.cliques[{index}]",
            )
        queue = own
    return queue


def _wish(path: str, level: Level, constraint: TopologyConstraint | None) -> TopologyRequirement | None:
    if constraint is None:
        return None
    return TopologyRequirement(f"{path}.topologyConstraint", level, constraint.required, constraint.preferred)

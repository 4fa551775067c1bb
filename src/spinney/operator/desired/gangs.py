"""Which PodGangs a PodCliqueSet has, and what stands in each.

For every replica of the set there is one *base* gang: the standalone cliques and the first ``minAvailable`` replicas of
each scaling group. Every further replica of a scaling group is a *scaled* gang of its own. A gang's groups are its
PodCliques; a group's references are its live pods.
"""

import re
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Final

import msgspec

from spinney.api import labels as marks
from spinney.api.grove import PodCliqueScalingGroupConfig
from spinney.api.podgang import (
    GangTopologyConstraint,
    NamespacedName,
    PodGang,
    PodGangSpec,
    PodGroup,
    TopologyConstraintGroupConfig,
)
from spinney.api.topology_constraint import TopologyConstraint
from spinney.backends import additions
from spinney.operator.desired import hashes, labels, names
from spinney.operator.desired.layout import CliquePlace, GroupPlace, Layout
from spinney.operator.desired.topologies import SetTopology, Untranslatable
from spinney.operator.headcounts import Headcount

_INDEX: Final = re.compile("0|[1-9][0-9]{0,9}")


@dataclass(frozen=True)
class GangPlan:
    """A gang that must exist: its name, and the places of its PodCliques in order, worked out when they are needed."""

    layout: Layout = field(repr=False, compare=False)
    name: str
    replica: int
    scaled: GroupPlace | None = None

    @cached_property
    def places(self) -> tuple[CliquePlace, ...]:
        """Return where the PodCliques of the gang stand."""
        if self.scaled is None:
            return tuple(self.layout.base(self.replica))
        return tuple(self.layout.members(self.replica, self.scaled.config.name, self.scaled.replica))

    @property
    def base(self) -> bool:
        """Tell whether this is the gang that scaled gangs of its replica wait for."""
        return self.scaled is None


@dataclass(frozen=True)
class GangContent:
    """The spec a gang must have, and the required domains that keep its pods gated."""

    spec: PodGangSpec
    held: tuple[Untranslatable, ...] = ()


def expected_gangs(layout: Layout, live_replicas: Mapping[str, int]) -> list[GangPlan]:
    """Return every gang of a set: base gangs by replica, then scaled gangs by replica, group and group replica.

    ``live_replicas`` has the replicas of the PodCliqueScalingGroups that exist, by name; they decide once they do.
    """
    base = [GangPlan(layout, names.base_gang(layout.name, i), i) for i in range(layout.replicas)]
    scaled = [
        plan
        for i in range(layout.replicas)
        for group in layout.group_configs
        for plan in scaled_gangs(layout, i, group, live_replicas)
    ]
    return base + scaled


def scaled_gangs(layout: Layout, i: int, group: str, live_replicas: Mapping[str, int]) -> Iterator[GangPlan]:
    """Yield the gangs of the replicas of one scaling group beyond its minimum."""
    config = layout.group_configs[group]
    name = names.scaling_group(layout.name, i, group)
    for j in range(config.minimum, _copies(config, name, live_replicas)):
        yield GangPlan(layout, names.scaled_gang(name, j, config.minimum), i, GroupPlace(config, name, j))


def plan_of(layout: Layout, i: int, gang: str, live_replicas: Mapping[str, int]) -> GangPlan | None:
    """Return the plan of one gang of replica ``i`` by name; ``None`` when the set has no such gang."""
    if gang == names.base_gang(layout.name, i):
        return GangPlan(layout, gang, i)
    stem, _, index = gang.rpartition("-")
    for group, config in layout.group_configs.items():
        name = names.scaling_group(layout.name, i, group)
        if name != stem or not _INDEX.fullmatch(index):
            continue
        j = int(index) + config.minimum
        if j < _copies(config, name, live_replicas):
            return GangPlan(layout, gang, i, GroupPlace(config, name, j))
    return None


def _copies(config: PodCliqueScalingGroupConfig, name: str, live_replicas: Mapping[str, int]) -> int:
    return live_replicas.get(name, config.copies)


def content(plan: GangPlan, layout: Layout, topology: SetTopology, pods: Mapping[str, Headcount]) -> GangContent:
    """Return the spec of a gang; ``pods`` are those of each PodClique by its name."""
    template = layout.pcs.spec.template
    held: list[Untranslatable] = []

    def translated(constraint: TopologyConstraint | None) -> GangTopologyConstraint | None:
        result, missing = topology.translate(constraint)
        if missing is not None:
            held.append(missing)
        return result

    of_whole = template.topology_constraint
    if plan.scaled is not None and plan.scaled.config.topology_constraint is not None:
        of_whole = plan.scaled.config.topology_constraint
    spec = PodGangSpec(
        pod_groups=tuple(
            PodGroup(
                name=place.name,
                min_replicas=place.minimum,
                pod_references=references(plan.name, pods.get(place.name)),
                topology_constraint=translated(place.template.topology_constraint),
            )
            for place in plan.places
        ),
        topology_constraint=translated(of_whole),
        topology_constraint_group_configs=tuple(
            TopologyConstraintGroupConfig(
                name=group.stem,
                pod_group_names=tuple(place.name for place in members),
                topology_constraint=constraint,
            )
            for group, members in _constrained_groups(plan)
            if (constraint := translated(group.config.topology_constraint)) is not None
        ),
        priority_class_name=template.priority_class_name,
    )
    return GangContent(spec, tuple(held))


def with_references_of(spec: PodGangSpec, other: PodGangSpec | None) -> PodGangSpec:
    """Return a spec whose groups refer to the same pods as those of ``other``; to none without one."""
    known = {group.name: group.pod_references for group in other.pod_groups} if other is not None else {}
    groups = tuple(
        msgspec.structs.replace(group, pod_references=known.get(group.name, ())) for group in spec.pod_groups
    )
    return msgspec.structs.replace(spec, pod_groups=groups)


def with_constraints_of(spec: PodGangSpec, other: PodGangSpec) -> PodGangSpec:
    """Return a spec with the topology constraints of ``other``, which hold until they can be translated again."""
    known = {group.name: group.topology_constraint for group in other.pod_groups}
    return msgspec.structs.replace(
        spec,
        topology_constraint=other.topology_constraint,
        topology_constraint_group_configs=other.topology_constraint_group_configs,
        pod_groups=tuple(
            msgspec.structs.replace(group, topology_constraint=known.get(group.name)) for group in spec.pod_groups
        ),
    )


def references(gang: str, pods: Headcount | None) -> tuple[NamespacedName, ...]:
    """Return references to the live pods that are labelled as the gang's, by name."""
    return pods.references.get(gang, ()) if pods is not None else ()


def gang_labels(layout: Layout, plan: GangPlan, scheduler: str) -> dict[str, str]:
    """Return the labels of a gang: the set's own for schedulers to read, and ours."""
    return (
        labels.mirrored(layout.pcs.metadata.labels)
        | labels.component(layout.name, labels.PODGANG, plan.name)
        | {marks.REPLICA_INDEX: str(plan.replica), marks.SCHEDULER_NAME: scheduler}
        | ({} if plan.base else {marks.BASE_POD_GANG: names.base_gang(layout.name, plan.replica)})
    )


def gang_annotations(layout: Layout, topology: SetTopology, spec: PodGangSpec) -> dict[str, str]:
    """Return the annotations of a gang: the set's own, and the topology when a constraint was translated."""
    annotations = labels.mirrored(layout.pcs.metadata.annotations)
    if topology.name is not None and is_constrained(spec):
        annotations[marks.TOPOLOGY_NAME] = topology.name
    return annotations


def is_constrained(spec: PodGangSpec) -> bool:
    """Tell whether any part of a gang has a topology constraint."""
    of_configs = [config.topology_constraint for config in spec.topology_constraint_group_configs]
    of_groups = [group.topology_constraint for group in spec.pod_groups]
    return any(each is not None for each in (spec.topology_constraint, *of_configs, *of_groups))


def structure_hash(gang: PodGang) -> str:
    """Return a hash of all that a backend builds its objects from; references, which come and go, are left out."""
    spec, metadata = gang.spec, gang.metadata
    return _hash_of(
        (
            ("groups", tuple((each.name, each.min_replicas, each.topology_constraint) for each in spec.pod_groups)),
            ("topology", spec.topology_constraint),
            ("groupConfigs", spec.topology_constraint_group_configs),
            ("priorityClassName", spec.priority_class_name),
            ("scheduler", metadata.labels.get(marks.SCHEDULER_NAME)),
            ("topologyName", metadata.annotations.get(marks.TOPOLOGY_NAME)),
            ("incarnation", metadata.annotations.get(additions.INCARNATION)),
        )
    )


@lru_cache(maxsize=16_384)  # every look at a gang asks several times
def _hash_of(structure: tuple[tuple[str, Hashable], ...]) -> str:
    return hashes.digest(dict(structure))


def _constrained_groups(plan: GangPlan) -> list[tuple[GroupPlace, list[CliquePlace]]]:
    """Return the scaling group replicas of a base gang that have a constraint of their own, with their PodCliques."""
    found: dict[str, tuple[GroupPlace, list[CliquePlace]]] = {}
    for place in plan.places if plan.base else ():
        if place.group is not None and place.group.config.topology_constraint is not None:
            found.setdefault(place.group.stem, (place.group, []))[1].append(place)
    return list(found.values())

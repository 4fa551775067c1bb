"""Gangs of KAI PodGroups (``scheduling.run.ai/v2alpha2``).

The sub-groups of a PodGroup are a flat list that describes a tree: one with children is a group set, one without is a
pod set. Without any there is a single pod set named ``default``. Pods say which by label.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Final

from spinney.api.durations import InvalidDuration, parse_duration
from spinney.api.kai import TOPOLOGY, GroupTopologyConstraint, PodGroup, SubGroup
from spinney.api.labels import KAI_LAST_EVICTION, KAI_LAST_START, KAI_POD_GROUP, KAI_STALE_SINCE, KAI_SUB_GROUP
from spinney.cluster.pods import PodRecord
from spinney.gangs.sources.context import DEFAULT_QUEUE, SourceContext, is_preemptible, timestamp_of
from spinney.gangs.tree import (
    DEEPEST,
    DEFAULT_POD_SET,
    Gang,
    GangKey,
    GroupSet,
    Member,
    PodSet,
    TopologyConstraintInfo,
    single,
)

SOURCE: Final = "kai"
_NAMED: Final = 5


def membership(record: PodRecord) -> tuple[GangKey, str] | None:
    """Return the gang and pod set a pod says it belongs to."""
    name = record.annotations.get(KAI_POD_GROUP)
    if not name:
        return None
    return GangKey(SOURCE, record.namespace, name), record.labels.get(KAI_SUB_GROUP, DEFAULT_POD_SET)


def gang(group: PodGroup, context: SourceContext) -> Gang:
    """Return the gang of a PodGroup."""
    metadata, spec = group.metadata, group.spec
    problem = ""
    grace = delay = None
    try:
        root = _tree(group)
        grace, delay = _duration(spec.staleness_grace_period), _duration(spec.preemption_delay)
    except (InvalidTree, InvalidDuration) as error:
        root, problem = GroupSet(name=""), str(error)
    gang = context.gang(GangKey.of(SOURCE, group.metadata), root, metadata, spec.priority_class_name)
    return replace(
        gang,
        queue=spec.queue or DEFAULT_QUEUE,
        preemptible=is_preemptible(spec.preemptibility, gang.priority),
        last_start=timestamp_of(metadata.annotations, KAI_LAST_START),
        last_eviction=timestamp_of(metadata.annotations, KAI_LAST_EVICTION),
        stale_since=timestamp_of(metadata.annotations, KAI_STALE_SINCE),
        staleness_grace=grace,
        preemption_delay=delay,
        mark_unschedulable=spec.mark_unschedulable is not False,
        problem=problem,
    )


class InvalidTree(ValueError):
    """Sub-groups that do not describe a tree."""


def _tree(group: PodGroup) -> GroupSet:
    spec = group.spec
    topology = constraint(spec.topology_constraint)
    if not spec.sub_groups:
        floor = 1 if spec.min_member is None else spec.min_member
        return single(PodSet(DEFAULT_POD_SET, floor), topology=topology)
    names = [sub_group.name for sub_group in spec.sub_groups]
    known = frozenset(names)
    if len(set(names)) < len(names):
        raise InvalidTree("spec.subGroups: two of them have the same name")
    children: dict[str, list[SubGroup]] = {}
    for sub_group in spec.sub_groups:
        parent = sub_group.parent or ""
        if parent and parent not in known:
            raise InvalidTree(f"spec.subGroups[{sub_group.name}].parent: no sub-group is named {parent!r}")
        children.setdefault(parent, []).append(sub_group)
    placed: list[str] = []

    def grow(sub_group: SubGroup, depth: int) -> Member:
        if depth > DEEPEST:
            raise InvalidTree(
                f"spec.subGroups[{sub_group.name}]: nested deeper than {DEEPEST} levels, which is too deep"
            )
        placed.append(sub_group.name)
        below = tuple(grow(child, depth + 1) for child in children.get(sub_group.name, ()))
        own = constraint(sub_group.topology_constraint)
        if below:
            return GroupSet(sub_group.name, below, sub_group.min_sub_group, own)
        return PodSet(sub_group.name, 1 if sub_group.min_member is None else sub_group.min_member, own)

    members = tuple(grow(sub_group, 1) for sub_group in children.get("", ()))
    if len(placed) < len(names):
        lost = sorted(set(names) - set(placed))
        raise InvalidTree(f"spec.subGroups: the parents of {', '.join(lost[:_NAMED])} form a cycle")
    return GroupSet("", members, spec.min_sub_group, topology)


def constraint(found: GroupTopologyConstraint | None) -> TopologyConstraintInfo | None:
    """Return a topology constraint that constrains something, or ``None``."""
    if found is None or not (found.required_topology_level or found.preferred_topology_level):
        return None
    return TopologyConstraintInfo(
        topology=found.topology or "",
        required=found.required_topology_level or "",
        preferred=found.preferred_topology_level or "",
        kind=TOPOLOGY.kind,
    )


def _duration(text: str | None) -> timedelta | None:
    return parse_duration(text) if text else None

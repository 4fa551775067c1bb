"""Segments: a role cut into runs of pods that are placed close to each other.

Where a leader belongs to the first segment (LeaderWorkerSet), workers are numbered from 1: if the segment size divides
their number the leader is extra, else it takes a place of segment 0. That segment then has two parts, the leader and
its workers, unless the leader is asked to stand apart. Without a leader (PyTorchJob) the role becomes the parent of its
segments; those beyond its floor are not needed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from spinney.api import labels as marks
from spinney.api.core import Pod
from spinney.gangs.tree import TopologyConstraintInfo
from spinney.grouping.attributes import SEGMENT_PREFERRED_LEVEL, SEGMENT_REQUIRED_LEVEL, SEGMENT_SIZE
from spinney.grouping.roles import holds
from spinney.grouping.rules import Segments, term
from spinney.grouping.shapes import MOST_PARTS, REMEMBERED, RoleInstance, SubGroupShape, pod_number
from spinney.grouping.terms import RuleRefused, TermInput, whole_number


def segmented(
    pod: Pod, scope: TermInput, roles: Sequence[RoleInstance], cut: RoleInstance, own: RoleInstance | None
) -> tuple[tuple[SubGroupShape, ...], str | None] | None:
    """Return the sub-groups of a workload with segments, and the leaf of the pod; ``None``: there is nothing to cut."""
    segments = cut.role.segments
    assert segments is not None
    index = pod_number(pod, segments.index) if own is cut else None
    leader = next((each for each in roles if each.name == segments.leader), None) if segments.leader else None
    most = cut.replicas + (leader.floor if leader is not None else 0)
    size = _size(segments, pod, scope, cut.template or {})
    if size is None or not cut.replicas:
        return None
    if not 1 < size <= most:
        raise RuleRefused(f"segment size: found {size}, expected more than 1 and at most {most}, the pods there are")
    if most / size > MOST_PARTS:
        raise RuleRefused(f"segment size: {size} makes more than {MOST_PARTS} segments of {most} pods")
    if own is cut and index is None:
        raise RuleRefused(f"label {segments.index} of the pod: not there, expected the number of the pod")
    cutting = _Cutting(cut, segments, size, _topology(pod, scope, cut.template or {}))
    if leader is None:
        groups = cutting.of_role(roles)
        place = None if index is None else index // size
        return groups, cutting.named(place) if place is not None else own.name if own is not None else None
    apart = bool(segments.apart) and holds(segments.apart, scope)
    groups = cutting.with_leader(leader, apart=apart)
    if own is leader:
        return groups, leader.name
    if index is None:
        return groups, None
    place = (index - 1) // size if cutting.leader_is_extra else index // size
    return groups, cut.name if place == 0 and not apart else cutting.named(place)


@dataclass(frozen=True)
class _Cutting:
    """A role, the size of its segments and the constraint each has."""

    cut: RoleInstance
    segments: Segments
    size: int
    topology: TopologyConstraintInfo | None

    @property
    def leader_is_extra(self) -> bool:
        return self.cut.floor % self.size == 0

    def named(self, number: int) -> str:
        return self.segments.name.format(role=self.cut.name, index=number)

    def of_role(self, roles: Sequence[RoleInstance]) -> tuple[SubGroupShape, ...]:
        """Return the sub-groups where the role becomes the parent of its segments."""
        groups: list[SubGroupShape] = []
        for each in roles:
            if each is not self.cut:
                groups.append(SubGroupShape(each.name, min_member=each.floor))
                continue
            sizes = (each.replicas, each.floor, self.size)
            groups += _cut(each.name, self.segments.name, sizes, self.topology)
        return tuple(groups)

    def with_leader(self, leader: RoleInstance, *, apart: bool) -> tuple[SubGroupShape, ...]:
        """Return the sub-groups where a leader belongs to the first segment, or stands beside them."""
        workers, extra = self.cut.floor, self.leader_is_extra
        if apart and not extra:
            raise RuleRefused(
                f"segment size: {self.size} does not divide {workers} workers, as a leader that stands apart needs"
            )
        pods = workers if extra else workers + leader.floor
        sizes = [min(self.size, pods - start) for start in range(0, pods, self.size)]
        groups = [
            SubGroupShape(self.named(number), min_member=each, topology=self.topology)
            for number, each in enumerate(sizes)
        ]
        if apart:
            return (SubGroupShape(leader.name, min_member=leader.floor), *groups)
        first = groups[0].name
        parts = [SubGroupShape(leader.name, min_member=leader.floor, parent=first)]
        beside = sizes[0] if extra else sizes[0] - leader.floor
        if beside > 0:
            parts.append(SubGroupShape(self.cut.name, min_member=beside, parent=first))
        return (SubGroupShape(first, min_sub_group=len(parts), topology=self.topology), *groups[1:], *parts)


@lru_cache(maxsize=REMEMBERED)
def _cut(
    role: str, name: str, sizes: tuple[int, int, int], topology: TopologyConstraintInfo | None
) -> tuple[SubGroupShape, ...]:
    """Return a role and its segments; remembered, as each pod of a workload asks for all of them."""
    replicas, floor, size = sizes
    starts = range(0, replicas, size)
    segments = (
        SubGroupShape(
            name.format(role=role, index=number),
            min_member=min(size, replicas - start) if start < floor else 0,
            parent=role,
            topology=topology,
        )
        for number, start in enumerate(starts)
    )
    return (SubGroupShape(role, min_sub_group=len(starts)), *segments)


def _size(segments: Segments, pod: Pod, scope: TermInput, template: Mapping[str, str]) -> int | None:
    if segments.size is not None and (found := term(segments.size).value(scope)) is not None:
        return found
    text = _annotation(SEGMENT_SIZE, pod, scope, template)
    return None if text is None else whole_number(text, f"annotation {SEGMENT_SIZE}")


def _topology(pod: Pod, scope: TermInput, template: Mapping[str, str]) -> TopologyConstraintInfo | None:
    name = _annotation(marks.KAI_TOPOLOGY, pod, scope, template)
    required, preferred = (
        pod.metadata.annotations.get(key) or template.get(key) or ""
        for key in (SEGMENT_REQUIRED_LEVEL, SEGMENT_PREFERRED_LEVEL)
    )
    return TopologyConstraintInfo(name, required, preferred) if name and (required or preferred) else None


def _annotation(key: str, pod: Pod, scope: TermInput, template: Mapping[str, str]) -> str | None:
    """Return an annotation of the pod, else of its template, else of the workload."""
    return pod.metadata.annotations.get(key) or template.get(key) or scope.annotation(key)

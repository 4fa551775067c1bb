"""A gang's description as a PodGang, which every scheduler backend can translate.

Leaves become groups of pods. A parent becomes a group of groups where it has a topology constraint, or where only some
of the parents are needed; the PodGang says how many by an annotation, as its API has no field for it. Names are made
valid; what they were is kept in an annotation.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from spinney.api import labels as marks
from spinney.api.core import Pod
from spinney.api.durations import format_duration
from spinney.api.labels import KAI_PREEMPTIBILITY, KAI_PREEMPTION_DELAY, KAI_PRIORITY_CLASS, KAI_STALENESS_GRACE
from spinney.api.merge_patch import merge_patch
from spinney.api.meta import ObjectMeta, OwnerReference
from spinney.api.names import label_value_faults, valid_name
from spinney.api.podgang import (
    GangTopologyConstraint,
    NamespacedName,
    PodGang,
    PodGangSpec,
    PodGroup,
    TopologyConstraintGroupConfig,
    TopologyPackConstraint,
)
from spinney.api.struct import JSON, to_json
from spinney.api.time import timestamp
from spinney.gangs.tree import DEFAULT_POD_SET, TopologyConstraintInfo
from spinney.grouping.describing import GangDescription, top_owner_metadata
from spinney.grouping.rules import POD_KIND
from spinney.grouping.shapes import SubGroupShape

GROUPED_AS_GANG: Final = "gang"
GROUPED_ALONE: Final = "alone"

_NOT_CARRIED: Final = (marks.MANAGED_BY, marks.PART_OF, marks.COMPONENT)
"""Labels by which other controllers find what is theirs: a gang does not inherit them."""


def gang_name(description: GangDescription) -> str:
    """Return what the PodGang of a description is called; pods carry it as a label."""
    return valid_name(description.name)


def group_name(sub_group: str | None) -> str:
    """Return what the group of pods of a sub-group is called in the PodGang."""
    return DEFAULT_POD_SET if sub_group is None else valid_name(sub_group)


def pod_gang(description: GangDescription, scheduler: str, pods: Mapping[str, Iterable[Pod]]) -> PodGang:
    """Return the PodGang of a description; ``pods`` are those of each group, by the group's name."""
    found, shape = description.attributes, description.shape
    labels = {key: value for key, value in found.labels.items() if key not in _NOT_CARRIED and not _is_groves(key)}
    labels |= {marks.GROUPED: GROUPED_AS_GANG, marks.SCHEDULER_NAME: scheduler, marks.KAI_QUEUE: found.queue}
    if found.preemptibility:
        labels[KAI_PREEMPTIBILITY] = found.preemptibility
    annotations = _annotations(description)
    inherited = {*labels, *annotations} - {marks.GROUPED, marks.SCHEDULER_NAME, marks.TOP_OWNER, marks.KAI_QUEUE}
    if inherited:
        annotations[marks.INHERITED] = " ".join(sorted(inherited))
    metadata = ObjectMeta(
        name=gang_name(description),
        namespace=description.namespace,
        labels=labels,
        annotations=annotations,
        owner_references=_owners(description),
    )
    spec = PodGangSpec(
        pod_groups=tuple(_groups(description, pods)),
        topology_constraint=_constraint(found.topology),
        topology_constraint_group_configs=tuple(_parents(shape.sub_groups, all_=_needs_parents(description))),
        priority_class_name=found.priority_class or None,
    )
    return PodGang(metadata=metadata, spec=spec)


def needed(description: GangDescription) -> int:
    """Return how many pods a gang cannot do without."""
    shape = description.shape
    if shape.min_member is not None:
        return shape.min_member
    return sum(group.min_member or 0 for group in shape.sub_groups if group.counts)


def alone_labels(description: GangDescription) -> dict[str, str]:
    """Return the labels of a pod that is a gang of its own: how it stands is said on the pod itself.

    The name of a priority class may be longer than a label: such a one is read from the pod's spec.
    """
    found = description.attributes
    labels = {marks.GROUPED: GROUPED_ALONE, marks.KAI_QUEUE: found.queue}
    if not label_value_faults(found.priority_class):
        labels[KAI_PRIORITY_CLASS] = found.priority_class
    if found.preemptibility:
        labels[KAI_PREEMPTIBILITY] = found.preemptibility
    return labels


def correction(found: PodGang, wanted: PodGang) -> JSON | None:
    """Return the merge patch that gives a PodGang what it lacks.

    What its workload said and no longer says is taken away; what others put on it stays.
    """
    patch: JSON = {}
    own = (marks.MIN_GROUPS, marks.INHERITED, marks.FINISHED_AND_GONE)
    inherited = {*own, *found.metadata.annotations.get(marks.INHERITED, "").split()}
    for field in ("labels", "annotations"):
        there, asked = getattr(found.metadata, field), getattr(wanted.metadata, field)
        lacking: JSON = {key: value for key, value in asked.items() if there.get(key) != value}
        lacking |= dict.fromkeys(inherited & there.keys() - asked.keys())
        if lacking:
            patch.setdefault("metadata", {})[field] = lacking
    if found.metadata.owner_references != wanted.metadata.owner_references:
        patch.setdefault("metadata", {})["ownerReferences"] = to_json(wanted.metadata.owner_references)
    if found.spec != wanted.spec:
        patch["spec"] = merge_patch(to_json(found.spec), to_json(wanted.spec))
    return patch or None


def with_floors(gang: PodGang, finished: Mapping[str, int], before: PodGang | None = None) -> PodGang:
    """Return a PodGang in which pods that have finished well are not needed again.

    A group that is done needs nobody, so that those which start after it can, and stays done when its pods are removed,
    as ``before`` shows; a gang of one group keeps one.
    """
    least = 1 if len(gang.spec.pod_groups) == 1 else 0
    done = {group.name for group in before.spec.pod_groups if not group.min_replicas} if before is not None else ()

    def floor(group: PodGroup) -> int:
        if group.name in done and not group.pod_references:
            return 0
        return max(min(group.min_replicas, least), group.min_replicas - finished.get(group.name, 0))

    groups = tuple(msgspec.structs.replace(group, min_replicas=floor(group)) for group in gang.spec.pod_groups)
    return msgspec.structs.replace(gang, spec=msgspec.structs.replace(gang.spec, pod_groups=groups))


def without_pods(spec: PodGangSpec) -> PodGangSpec:
    """Return what a gang asks for, whichever pods there are."""
    groups = tuple(msgspec.structs.replace(group, pod_references=()) for group in spec.pod_groups)
    return msgspec.structs.replace(spec, pod_groups=groups)


def _groups(description: GangDescription, pods: Mapping[str, Iterable[Pod]]) -> Iterable[PodGroup]:
    shape = description.shape
    if not shape.sub_groups:
        yield PodGroup(
            name=DEFAULT_POD_SET,
            min_replicas=shape.min_member or 0,
            pod_references=_references(pods.get(DEFAULT_POD_SET, ())),
        )
        return
    for group in shape.sub_groups:
        if group.min_member is not None and group.counts:
            name = valid_name(group.name)
            yield PodGroup(
                name=name,
                min_replicas=group.min_member,
                pod_references=_references(pods.get(name, ())),
                topology_constraint=_constraint(group.topology),
            )


def _parents(sub_groups: Iterable[SubGroupShape], *, all_: bool) -> Iterable[TopologyConstraintGroupConfig]:
    every = tuple(sub_groups)
    inside: dict[str | None, list[str]] = {}
    for each in every:
        inside.setdefault(each.parent, []).append(valid_name(each.name))
    for parent in every:
        children = tuple(inside.get(parent.name, ()))
        if children and parent.counts and (all_ or parent.topology is not None):
            yield TopologyConstraintGroupConfig(
                name=valid_name(parent.name),
                pod_group_names=children,
                topology_constraint=_constraint(parent.topology),
            )


def _needs_parents(description: GangDescription) -> bool:
    """Tell whether only some of the sub-groups at the top are needed, so that they have to be there to be counted."""
    shape = description.shape
    counting = [group for group in shape.sub_groups if group.parent is None and group.counts]
    return shape.min_sub_group is not None and shape.min_sub_group < len(counting)


def _annotations(description: GangDescription) -> dict[str, str]:
    found, shape = description.attributes, description.shape
    annotations = {**found.annotations, marks.TOP_OWNER: top_owner_metadata(description.owner)}
    if description.above:
        annotations[marks.ABOVE] = " ".join(f"{owner.kind}/{owner.metadata.name}" for owner in description.above)
    constraints = [found.topology, *(group.topology for group in shape.sub_groups)]
    topology = next((each.topology for each in constraints if each is not None and each.topology), None)
    if topology is not None and marks.TOPOLOGY_NAME not in annotations:
        annotations[marks.KAI_TOPOLOGY] = topology
    if found.preemption_delay is not None:
        annotations[KAI_PREEMPTION_DELAY] = format_duration(found.preemption_delay)
    if found.staleness_grace is not None:
        annotations[KAI_STALENESS_GRACE] = format_duration(found.staleness_grace)
    created = description.owner.metadata.creation_timestamp
    if created is not None and description.owner.metadata.labels.get(marks.ADMISSION) == marks.QUEUED:
        annotations[marks.WAITING_SINCE] = timestamp(created)  # it keeps the place it had while it was suspended
    if _needs_parents(description):
        annotations[marks.MIN_GROUPS] = str(shape.min_sub_group)
    names = {valid_name(each.name): each.name for each in shape.sub_groups if valid_name(each.name) != each.name}
    if names:
        annotations[marks.ORIGINAL_NAMES] = msgspec.json.encode(names).decode()
    return annotations


def _owners(description: GangDescription) -> tuple[OwnerReference, ...]:
    """Return the owner with which the gang goes; one of several pods is none, as the gang outlives it."""
    owner = description.owner
    if (owner.group_kind == POD_KIND and description.rule.label) or not owner.metadata.uid:
        return ()
    reference = OwnerReference(
        api_version=owner.api_version, kind=owner.kind, name=owner.metadata.name, uid=owner.metadata.uid
    )
    return (reference,)


def _references(pods: Iterable[Pod]) -> tuple[NamespacedName, ...]:
    keys = sorted((pod.metadata.namespace or "", pod.metadata.name) for pod in pods)
    return tuple(NamespacedName(namespace=namespace, name=name) for namespace, name in keys)


def _constraint(topology: TopologyConstraintInfo | None) -> GangTopologyConstraint | None:
    if topology is None or not (topology.required or topology.preferred):
        return None
    pack = TopologyPackConstraint(required=topology.required or None, preferred=topology.preferred or None)
    return GangTopologyConstraint(pack_constraint=pack)


def _is_groves(key: str) -> bool:
    return key.startswith(marks.GROVE_PREFIX)

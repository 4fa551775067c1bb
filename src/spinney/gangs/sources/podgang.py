"""Gangs of PodGangs (``scheduler.grove.io/v1alpha1``).

A PodGang lists groups of pods with their minimums. Groups that share a topology constraint become one group set; the
others hang below the root. A pod belongs to the group named like its PodClique.

A gang that the grouper made of a workload has no operator to recycle it, and may need only some of its groups.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final

from spinney.api.kai import TOPOLOGY
from spinney.api.labels import (
    BASE_POD_GANG,
    GROUPED,
    KAI_PREEMPTION_DELAY,
    KAI_STALENESS_GRACE,
    KAI_TOPOLOGY,
    MIN_GROUPS,
    POD_CLIQUE,
    POD_GANG,
    TOPOLOGY_NAME,
    WAITING_SINCE,
)
from spinney.api.podgang import GangTopologyConstraint, PodGang
from spinney.api.topology_binding import CLUSTER_TOPOLOGY_BINDING
from spinney.cluster.pods import PodRecord
from spinney.gangs.sources.context import SourceContext, duration_of, timestamp_of
from spinney.gangs.tree import DEFAULT_POD_SET, Gang, GangKey, GroupSet, Member, PodSet, TopologyConstraintInfo

SOURCE: Final = "podgang"


def membership(record: PodRecord) -> tuple[GangKey, str] | None:
    """Return the gang and pod set a pod says it belongs to."""
    name = record.labels.get(POD_GANG)
    if not name:
        return None
    return GangKey(SOURCE, record.namespace, name), record.labels.get(POD_CLIQUE, DEFAULT_POD_SET)


def gang(pod_gang: PodGang, context: SourceContext) -> Gang:
    """Return the gang of a PodGang."""
    metadata, spec = pod_gang.metadata, pod_gang.spec
    topology = _named_topology(metadata.annotations)
    leaves = {
        group.name: PodSet(group.name, group.min_replicas, _constraint(group.topology_constraint, topology))
        for group in spec.pod_groups
    }
    members: list[Member] = []
    for config in spec.topology_constraint_group_configs:
        inside = tuple(leaves.pop(name) for name in config.pod_group_names if name in leaves)
        if inside:
            members.append(GroupSet(config.name, inside, None, _constraint(config.topology_constraint, topology)))
    members += leaves.values()
    root = GroupSet("", tuple(members), _min_groups(pod_gang), _constraint(spec.topology_constraint, topology))
    base = metadata.labels.get(BASE_POD_GANG)
    return replace(
        context.gang(GangKey.of(SOURCE, pod_gang.metadata), root, metadata, spec.priority_class_name),
        queue=context.queue(metadata.labels, metadata.annotations),
        created=_waiting_since(pod_gang),
        staleness_grace=duration_of(metadata.annotations, KAI_STALENESS_GRACE),
        preemption_delay=duration_of(metadata.annotations, KAI_PREEMPTION_DELAY),
        owned_by_operator=GROUPED not in metadata.labels,
        anchor=GangKey(SOURCE, metadata.namespace or "", base) if base else None,
    )


def _named_topology(annotations: Mapping[str, str]) -> TopologyConstraintInfo:
    """Return the topology that the constraints of a PodGang are about, as a constraint of nothing yet."""
    if name := annotations.get(TOPOLOGY_NAME):
        return TopologyConstraintInfo(name, kind=CLUSTER_TOPOLOGY_BINDING.kind)
    return TopologyConstraintInfo(annotations.get(KAI_TOPOLOGY, ""), kind=TOPOLOGY.kind)


def _waiting_since(pod_gang: PodGang) -> datetime | None:
    """Return since when a gang has waited: before it there may have been a workload that was suspended."""
    created = pod_gang.metadata.creation_timestamp
    before = timestamp_of(pod_gang.metadata.annotations, WAITING_SINCE)
    return created if before is None else min(before, created or before)


def _min_groups(pod_gang: PodGang) -> int | None:
    text = pod_gang.metadata.annotations.get(MIN_GROUPS, "")
    return int(text) if text.isdecimal() else None


def _constraint(
    found: GangTopologyConstraint | None, topology: TopologyConstraintInfo
) -> TopologyConstraintInfo | None:
    pack = found.pack_constraint if found is not None else None
    if pack is None or not (pack.required or pack.preferred):
        return None
    return replace(topology, required=pack.required or "", preferred=pack.preferred or "")

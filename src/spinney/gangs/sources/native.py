"""Gangs of Kubernetes' own objects (``scheduling.k8s.io``), in their three generations.

From 1.36 on a PodGroup is an object of its own and pods name it; in 1.35 groups are items of a Workload, and every
replica key makes a gang of its own under the same policy.
"""

from typing import Final

from spinney.api import workload_v1alpha1, workload_v1alpha2, workload_v1beta1
from spinney.api.workload_v1alpha2 import SchedulingConstraints
from spinney.cluster.pods import PodRecord
from spinney.gangs.sources.context import PREEMPTIBILITY_LABEL, SourceContext, is_preemptible
from spinney.gangs.tree import DEFAULT_POD_SET, Gang, GangKey, PodSet, TopologyConstraintInfo, single
from spinney.kube.keys import Key

SOURCE: Final = "native"
WORKLOAD_SOURCE: Final = "workload"

PodGroup = workload_v1alpha2.PodGroup | workload_v1beta1.PodGroup


def membership(record: PodRecord) -> tuple[GangKey, str] | None:
    """Return the gang and pod set a pod says it belongs to."""
    spec = record.pod.spec
    if spec.scheduling_group is not None and spec.scheduling_group.pod_group_name:
        return GangKey(SOURCE, record.namespace, spec.scheduling_group.pod_group_name), DEFAULT_POD_SET
    reference = spec.workload_ref
    if reference is not None:
        name = f"{reference.name}/{reference.pod_group}/{reference.pod_group_replica_key}"
        return GangKey(WORKLOAD_SOURCE, record.namespace, name), DEFAULT_POD_SET
    return None


def key_of(group: PodGroup) -> GangKey:
    """Return what identifies the gang of a PodGroup."""
    return GangKey(SOURCE, group.metadata.namespace or "", group.metadata.name)


def gang(group: PodGroup, context: SourceContext) -> Gang:
    """Return the gang of a PodGroup; a group without a gang policy has no minimum to wait for."""
    metadata, spec = group.metadata, group.spec
    policy = spec.scheduling_policy.gang
    priority = spec.priority if spec.priority is not None else context.priority(spec.priority_class_name)
    pod_set = PodSet(DEFAULT_POD_SET, policy.min_count if policy is not None else 1)
    return Gang(
        key=key_of(group),
        root=single(pod_set, topology=_constraint(spec.scheduling_constraints)),
        uid=metadata.uid or "",
        queue=context.queue(metadata.labels),
        priority=priority,
        priority_class=spec.priority_class_name,
        preemptible=is_preemptible(metadata.labels.get(PREEMPTIBILITY_LABEL), priority),
        disrupted_whole=is_disrupted_whole(spec.disruption_mode),
        created=metadata.creation_timestamp,
    )


def is_disrupted_whole(mode: str | workload_v1beta1.DisruptionMode | None) -> bool:
    """Tell whether a disruption mode, in any generation of the API, is that of a group as a whole."""
    return mode == "PodGroup" or (isinstance(mode, workload_v1beta1.DisruptionMode) and mode.all is not None)


def workload_of(key: GangKey) -> Key:
    """Return namespace and name of the Workload that a gang is a replica of a group of."""
    return Key(key.namespace, key.name.split("/")[0])


def workload_gang(workload: workload_v1alpha1.Workload, key: GangKey, context: SourceContext) -> Gang | None:
    """Return the gang of one replica of a Workload's group; ``None`` if the Workload has no such group."""
    name = key.name.split("/")[1]
    group = next((group for group in workload.spec.pod_groups if group.name == name), None)
    if group is None:
        return None
    metadata = workload.metadata
    priority = context.default_priority
    return Gang(
        key=key,
        root=single(PodSet(DEFAULT_POD_SET, group.policy.gang.min_count if group.policy.gang is not None else 1)),
        uid=f"{metadata.uid or metadata.name}/{key.name}",
        queue=context.queue(metadata.labels),
        priority=priority,
        preemptible=is_preemptible(metadata.labels.get(PREEMPTIBILITY_LABEL), priority),
        created=metadata.creation_timestamp,
    )


def _constraint(found: SchedulingConstraints | None) -> TopologyConstraintInfo | None:
    if found is None or not found.topology:
        return None
    return TopologyConstraintInfo(topology="", required=found.topology[0].key)

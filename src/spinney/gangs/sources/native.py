"""Gangs of Kubernetes' own objects (``scheduling.k8s.io``), in their three generations.

From 1.36 on a PodGroup is an object of its own and pods name it; in 1.35 groups are items of a Workload, and every
replica key makes a gang of its own under the same policy.
"""

from dataclasses import replace
from typing import Final

from spinney.api import workload_v1alpha1, workload_v1alpha2, workload_v1beta1
from spinney.api.workload_v1alpha2 import SchedulingConstraints
from spinney.cluster.pods import PodRecord
from spinney.gangs.sources.context import SourceContext
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


def gang(group: PodGroup, context: SourceContext) -> Gang:
    """Return the gang of a PodGroup; a group without a gang policy has no minimum to wait for."""
    spec, policy = group.spec, group.spec.scheduling_policy.gang
    pod_set = PodSet(DEFAULT_POD_SET, policy.min_count if policy is not None else 1)
    root = single(pod_set, topology=constraint(spec.scheduling_constraints))
    key = GangKey.of(SOURCE, group.metadata)
    gang = context.gang(key, root, group.metadata, spec.priority_class_name, spec.priority)
    return replace(gang, disrupted_whole=is_disrupted_whole(spec.disruption_mode))


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
    metadata, policy = workload.metadata, group.policy.gang
    root = single(PodSet(DEFAULT_POD_SET, policy.min_count if policy is not None else 1))
    gang = context.gang(key, root, metadata, None, context.default_priority)
    return replace(gang, uid=f"{metadata.uid or metadata.name}/{key.name}")


def constraint(found: SchedulingConstraints | None) -> TopologyConstraintInfo | None:
    """Return what of a group, or of a composite of groups, must lie in one domain of a topology key."""
    if found is None or not found.topology:
        return None
    return TopologyConstraintInfo(topology="", required=found.topology[0].key)

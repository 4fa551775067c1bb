"""The kinds the session scheduler reads beside pods and nodes, each only where the API server serves it."""

from collections.abc import Mapping
from typing import Any, Final

from spinney.api import coscheduling, kai, volcano, workload_v1alpha1, workload_v1alpha2, workload_v1beta1
from spinney.api.core import NAMESPACE, NODE, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, POD, Namespace, Node, Pod
from spinney.api.podgang import POD_GANG, PodGang
from spinney.api.policy import POD_DISRUPTION_BUDGET, PodDisruptionBudget
from spinney.api.resource import Resource
from spinney.api.resource_claims import (
    DEVICE_CLASS,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    DeviceClass,
    ResourceClaim,
    ResourceSlice,
)
from spinney.api.scheduling import PRIORITY_CLASS, PriorityClass
from spinney.api.storage import STORAGE_CLASS, PersistentVolume, PersistentVolumeClaim, StorageClass
from spinney.api.topology_binding import CLUSTER_TOPOLOGY_BINDING, ClusterTopologyBinding

OPTIONAL_KINDS: Final[Mapping[Resource, type[Any]]] = {
    PRIORITY_CLASS: PriorityClass,
    NAMESPACE: Namespace,
    POD_DISRUPTION_BUDGET: PodDisruptionBudget,
    PERSISTENT_VOLUME_CLAIM: PersistentVolumeClaim,
    PERSISTENT_VOLUME: PersistentVolume,
    STORAGE_CLASS: StorageClass,
    POD_GANG: PodGang,
    CLUSTER_TOPOLOGY_BINDING: ClusterTopologyBinding,
    kai.QUEUE: kai.Queue,
    kai.POD_GROUP: kai.PodGroup,
    kai.TOPOLOGY: kai.Topology,
    coscheduling.POD_GROUP: coscheduling.PodGroup,
    volcano.POD_GROUP: volcano.PodGroup,
    workload_v1alpha1.WORKLOAD: workload_v1alpha1.Workload,
    workload_v1alpha2.POD_GROUP: workload_v1alpha2.PodGroup,
    workload_v1beta1.POD_GROUP: workload_v1beta1.PodGroup,
    workload_v1beta1.COMPOSITE_POD_GROUP: workload_v1beta1.CompositePodGroup,
    RESOURCE_CLAIM: ResourceClaim,
    RESOURCE_SLICE: ResourceSlice,
    DEVICE_CLASS: DeviceClass,
}


def type_of(resource: Resource) -> type[Any]:
    """Return what objects of a kind that the scheduler reads are decoded as."""
    return {POD: Pod, NODE: Node}.get(resource) or OPTIONAL_KINDS[resource]

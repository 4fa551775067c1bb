"""Which kinds the coscheduler reads, and reading them before it is loaded: lists take as long to come as loading."""

from collections.abc import Mapping
from typing import Any, Final

from spinney.api import coscheduling, workload_v1alpha1, workload_v1alpha2, workload_v1beta1
from spinney.api.core import NAMESPACE, NODE, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, POD, Namespace, Node, Pod
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
from spinney.kube.manager import Manager

COMPONENT: Final = "spinney-coscheduler"
"""As whom the coscheduler writes, and the name of its lease."""

ABOUT_GROUPS: Final[Mapping[Resource, type[Any]]] = {
    workload_v1alpha1.WORKLOAD: workload_v1alpha1.Workload,
    workload_v1beta1.COMPOSITE_POD_GROUP: workload_v1beta1.CompositePodGroup,
    PRIORITY_CLASS: PriorityClass,
    coscheduling.POD_GROUP: coscheduling.PodGroup,
    workload_v1alpha2.POD_GROUP: workload_v1alpha2.PodGroup,
    workload_v1beta1.POD_GROUP: workload_v1beta1.PodGroup,
    POD_DISRUPTION_BUDGET: PodDisruptionBudget,
}
CONSTRAINTS: Final[Mapping[Resource, type[Any]]] = {
    RESOURCE_CLAIM: ResourceClaim,
    RESOURCE_SLICE: ResourceSlice,
    DEVICE_CLASS: DeviceClass,
    NAMESPACE: Namespace,
    PERSISTENT_VOLUME_CLAIM: PersistentVolumeClaim,
    PERSISTENT_VOLUME: PersistentVolume,
    STORAGE_CLASS: StorageClass,
}
"""What pods refer to, so that a change may help one that waits."""
_ALWAYS: Final[Mapping[Resource, type[Any]]] = {NODE: Node, POD: Pod}


async def begin_reading(manager: Manager) -> frozenset[Resource]:
    """Begin to read what a coscheduler of this manager will follow; return which kinds are served."""
    for resource, kind in _ALWAYS.items():
        manager.begin(resource, kind)
    return await manager.begin_served({**ABOUT_GROUPS, **CONSTRAINTS})

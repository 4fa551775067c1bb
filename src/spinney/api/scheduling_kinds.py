"""The kinds that every scheduler reads beside pods and nodes, each only where the API server serves it.

The start of a process waits for this module: it loads nothing but what objects look like.
"""

from collections.abc import Mapping
from typing import Any, Final

from spinney.api import coscheduling, workload_v1alpha1, workload_v1alpha2, workload_v1beta1
from spinney.api.core import NAMESPACE, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, Namespace
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

ABOUT_GROUPS: Final[Mapping[Resource, type[Any]]] = {
    PRIORITY_CLASS: PriorityClass,
    POD_DISRUPTION_BUDGET: PodDisruptionBudget,
    workload_v1alpha1.WORKLOAD: workload_v1alpha1.Workload,
    workload_v1beta1.COMPOSITE_POD_GROUP: workload_v1beta1.CompositePodGroup,
    coscheduling.POD_GROUP: coscheduling.PodGroup,
    workload_v1alpha2.POD_GROUP: workload_v1alpha2.PodGroup,
    workload_v1beta1.POD_GROUP: workload_v1beta1.PodGroup,
}
"""Groups of scheduler-plugins and of Kubernetes itself, and what decides about them."""
CONSTRAINTS: Final[Mapping[Resource, type[Any]]] = {
    NAMESPACE: Namespace,
    PERSISTENT_VOLUME_CLAIM: PersistentVolumeClaim,
    PERSISTENT_VOLUME: PersistentVolume,
    STORAGE_CLASS: StorageClass,
    RESOURCE_CLAIM: ResourceClaim,
    RESOURCE_SLICE: ResourceSlice,
    DEVICE_CLASS: DeviceClass,
}
"""What pods refer to, so that a change may help one that waits."""
INDISPENSABLE: Final = frozenset({PRIORITY_CLASS, POD_DISRUPTION_BUDGET, NAMESPACE, RESOURCE_CLAIM})
"""What must be known before anything is decided, where it is served: who may be disturbed, who keeps apart from whom,
which devices are taken. Of the other kinds nothing is assumed: what refers to them waits."""

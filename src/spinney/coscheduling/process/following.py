"""What the coscheduler watches, in the order in which it has to be taken in."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from spinney.api import workload_v1alpha1
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
from spinney.api.workload_v1beta1 import COMPOSITE_POD_GROUP, CompositePodGroup
from spinney.coscheduling.process.intake import CoschedulingIntake
from spinney.kube.cache import WatchCache
from spinney.kube.discovery import served
from spinney.kube.manager import Manager
from spinney.reporting.pod_groups import GROUP_KINDS
from spinney.reporting.unreadable import TakeIn, UnreadableObjects

_ABOVE_GROUPS: Final[dict[Resource, type[Any]]] = {
    workload_v1alpha1.WORKLOAD: workload_v1alpha1.Workload,
    COMPOSITE_POD_GROUP: CompositePodGroup,
    PRIORITY_CLASS: PriorityClass,
}
_DEVICES: Final[dict[Resource, type[Any]]] = {
    RESOURCE_CLAIM: ResourceClaim,
    RESOURCE_SLICE: ResourceSlice,
    DEVICE_CLASS: DeviceClass,
}
_CONSTRAINTS: Final[dict[Resource, type[Any]]] = {
    **_DEVICES,
    NAMESPACE: Namespace,
    PERSISTENT_VOLUME_CLAIM: PersistentVolumeClaim,
    PERSISTENT_VOLUME: PersistentVolume,
    STORAGE_CLASS: StorageClass,
}


async def follow_cluster(
    manager: Manager,
    intake: CoschedulingIntake,
    unreadable: UnreadableObjects,
    *,
    group_kind: Callable[[WatchCache[Any]], None],
) -> None:
    """Have everything taken in that the API server has; ``group_kind`` is called for each kind of group there is."""

    def follow(resource: Resource, kind: type[Any], take_in: TakeIn) -> WatchCache[Any]:
        cache: WatchCache[Any] = manager.cache(resource, kind)
        cache.subscribe(unreadable.guarded(resource, take_in))
        return cache

    available = await served(manager.client, (*_ABOVE_GROUPS, *GROUP_KINDS, *_DEVICES))
    # Groups and what constraints refer to come first, so that pods meet them when they are taken in.
    for resource, kind in _ABOVE_GROUPS.items():
        if resource in available:
            follow(resource, kind, intake.take_in)
    for resource, group in GROUP_KINDS.items():
        if resource in available:
            group_kind(follow(resource, group.type, intake.take_in))
    follow(POD_DISRUPTION_BUDGET, PodDisruptionBudget, intake.take_in)
    for resource, kind in _CONSTRAINTS.items():
        if resource in available or resource not in _DEVICES:
            follow(resource, kind, partial(intake.constraint, resource))
    follow(NODE, Node, intake.node)
    follow(POD, Pod, intake.pod)

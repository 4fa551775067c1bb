"""What the coscheduler watches, in the order in which it has to be taken in."""

from collections.abc import Callable
from functools import partial
from typing import Any

from spinney.api.core import NODE, POD, Node, Pod
from spinney.api.resource import Resource
from spinney.coscheduling.process.intake import CoschedulingIntake
from spinney.coscheduling.process.reading import ABOUT_GROUPS, CONSTRAINTS
from spinney.kube.cache import WatchCache
from spinney.kube.manager import Manager
from spinney.reporting.pod_groups import GROUP_KINDS
from spinney.reporting.unreadable import TakeIn, UnreadableObjects


def follow_cluster(
    manager: Manager,
    served: frozenset[Resource],
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

    # Groups and what constraints refer to come first, so that pods meet them when they are taken in.
    for resource, kind in ABOUT_GROUPS.items():
        if resource in served:
            cache = follow(resource, kind, intake.take_in)
            if resource in GROUP_KINDS:
                group_kind(cache)
    for resource, kind in CONSTRAINTS.items():
        if resource in served:
            follow(resource, kind, partial(intake.constraint, resource))
    follow(NODE, Node, intake.node)
    follow(POD, Pod, intake.pod)

"""What the coscheduler watches, in the order in which it has to be taken in."""

from collections.abc import Callable
from functools import partial
from typing import Any

from spinney.api.core import NODE, POD, Node, Pod
from spinney.api.resource import Resource
from spinney.api.scheduling_kinds import CONSTRAINTS, INDISPENSABLE
from spinney.coscheduling.process.intake import CoschedulingIntake
from spinney.coscheduling.process.reading import OPTIONAL_KINDS
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
    """Have all taken in that the API server serves, now or later; ``group_kind`` is called for each kind of group."""

    def follow(cache: WatchCache[Any]) -> None:
        cache.subscribe(unreadable.guarded(cache.resource, _taking_in(intake, cache.resource)))
        if cache.resource in GROUP_KINDS:
            group_kind(cache)

    # Groups and what constraints refer to come first, so that pods meet them when they are taken in.
    for resource, kind in OPTIONAL_KINDS.items():
        if resource in served:
            follow(manager.cache(resource, kind, optional=resource not in INDISPENSABLE))
    follow(manager.cache(NODE, Node))
    follow(manager.cache(POD, Pod))
    manager.follow_later(
        {resource: kind for resource, kind in OPTIONAL_KINDS.items() if resource not in served}, follow
    )


def _taking_in(intake: CoschedulingIntake, resource: Resource) -> TakeIn:
    """Return what takes in objects of a kind."""
    if resource in CONSTRAINTS:
        return partial(intake.constraint, resource)
    own: dict[Resource, TakeIn] = {NODE: intake.node, POD: intake.pod}
    return own.get(resource, intake.take_in)

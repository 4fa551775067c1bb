"""Names that another set has taken: set ``a`` with clique ``b-0-c`` and set ``a-0-b`` with clique ``c`` share one.

An object of another owner is never touched, so the set that comes second cannot come up, and says why. It is told
before anything is made for it, from what the caches know (:func:`taken_names`); where two sets are made at the same
time, when the API server refuses the second object (:func:`create_own`).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from spinney.api import labels as marks
from spinney.api.grove import (
    POD_CLIQUE,
    POD_CLIQUE_SCALING_GROUP,
    POD_CLIQUE_SET,
    PodClique,
    PodCliqueScalingGroup,
)
from spinney.api.meta import Metadata
from spinney.api.podgang import POD_GANG, PodGang
from spinney.api.resource import Resource
from spinney.kube.cache import WatchCache
from spinney.kube.client import Client
from spinney.kube.errors import AlreadyExists, NotFound
from spinney.kube.keys import Key
from spinney.kube.reconciling import Unread
from spinney.operator.caches import Caches
from spinney.operator.desired import names
from spinney.operator.desired.gangs import GangPlan
from spinney.operator.desired.layout import Layout
from spinney.operator.owned.auxiliary import NameTaken, OwnedObject

Owned: TypeAlias = PodGang | PodClique | PodCliqueScalingGroup


def taken_names(layout: Layout, plans: Sequence[GangPlan], caches: Caches) -> Iterator[str]:
    """Yield, for each object a set needs whose name another set has, which it is and what to do."""
    groups = (
        names.scaling_group(layout.name, i, group) for i in range(layout.replicas) for group in layout.group_configs
    )
    needed: list[tuple[Resource, WatchCache[Any], Iterable[str]]] = [
        (POD_GANG, caches.gangs, (plan.name for plan in plans)),
        (POD_CLIQUE, caches.cliques, (place.name for plan in plans for place in plan.places)),
        (POD_CLIQUE_SCALING_GROUP, caches.groups, groups),
    ]
    namespace, own = layout.pcs.metadata.namespace or "", f"{POD_CLIQUE_SET.kind} {layout.name}"
    for resource, cache, wanted in needed:
        for name in wanted:
            found = cache.get(Key(namespace, name))
            if found is not None and own not in (_set_of(found.metadata), _owner(found.metadata)):
                yield _told(resource, found.metadata, own)


async def create_own(client: Client, resource: Resource, wanted: Owned) -> None:
    """Create an object; one of its owner's that is there already is left, another owner's raises :class:`NameTaken`."""
    try:
        await client.create(resource, wanted, type=Unread)
    except AlreadyExists:
        await _expect_own(client, resource, wanted.metadata)


async def _expect_own(client: Client, resource: Resource, wanted: Metadata) -> None:
    try:
        found = await client.get(resource, wanted.name, wanted.namespace, type=OwnedObject)
    except NotFound:
        return
    # By name: what an owner that was deleted and made anew has left goes by itself, and wakes the new one.
    if _owner(found.metadata) != _owner(wanted):
        raise NameTaken(_told(resource, found.metadata, _owner(wanted)))


def _owner(metadata: Metadata) -> str:
    owner = metadata.controller
    return f"{owner.kind} {owner.name}" if owner is not None else "nobody"


def _set_of(metadata: Metadata) -> str | None:
    name = metadata.labels.get(marks.PART_OF)
    return f"{POD_CLIQUE_SET.kind} {name}" if name else None


def _told(resource: Resource, found: Metadata, needed_for: str) -> str:
    whose = _set_of(found) or _owner(found)
    return (
        f"{resource.kind} {found.namespace}/{found.name} is needed for {needed_for} and belongs to {whose}; "
        "rename one of the two sets, or a clique or scaling group of it"
    )

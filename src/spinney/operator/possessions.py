"""Objects the operator keeps for a PodCliqueSet without reading more of them than who they belong to.

:class:`Possessions` compares what is wanted with what is there, by name and recorded digest, and writes the difference:
apply what is missing or different, delete what nobody wants. An object of the right name that belongs to somebody else
is never touched; that is an error the user has to resolve. The caches only hold what carries our label, so before
anything is made it is asked for. Somebody else's ServiceAccount will do, though: it is a name to bind rights to.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Final

from spinney.api.autoscaling import HORIZONTAL_POD_AUTOSCALER
from spinney.api.core import SECRET, SERVICE, SERVICE_ACCOUNT
from spinney.api.meta import Metadata, OwnerReference
from spinney.api.rbac import ROLE, ROLE_BINDING
from spinney.api.resource import Resource
from spinney.api.struct import Struct
from spinney.backends import additions
from spinney.kube.cache import WatchCache
from spinney.kube.client import Client
from spinney.kube.errors import NotFound
from spinney.kube.finalizers import remove_finalizer
from spinney.kube.keys import Key
from spinney.kube.manager import Manager
from spinney.operator.auxiliary import COMPUTE_DOMAIN, DIGEST, Wanted
from spinney.operator.caches import MANAGED
from spinney.operator.last_errors import Obstacle
from spinney.operator.writing import delete_exactly, write_each

KINDS: Final = (SERVICE, SERVICE_ACCOUNT, ROLE, ROLE_BINDING, SECRET, HORIZONTAL_POD_AUTOSCALER)
FIELD_MANAGER: Final = "spinney-operator"
BY_OWNER: Final = "owner uid"


class Possession(Struct, frozen=True, kw_only=True):
    """An object, reduced to its metadata."""

    metadata: Metadata = Metadata()


class NameTaken(Obstacle):
    """An object that is needed exists and belongs to somebody else."""


def possession_cache(manager: Manager, resource: Resource) -> WatchCache[Possession]:
    """Return the cache of the managed objects of one kind, by owner."""
    return manager.cache(resource, Possession, label_selector=MANAGED, indexes={BY_OWNER: _owners})


class Possessions:
    """Keeps the auxiliary objects of sets."""

    def __init__(self, client: Client, caches: Mapping[Resource, WatchCache[Possession]]) -> None:
        self._client = client
        self.caches = caches

    @classmethod
    def of(cls, manager: Manager, *, mnnvl: bool) -> "Possessions":
        """Declare the caches with the manager, which runs them."""
        kinds = (*KINDS, COMPUTE_DOMAIN) if mnnvl else KINDS
        return cls(manager.client, {kind: possession_cache(manager, kind) for kind in kinds})

    async def keep(self, owner: OwnerReference, namespace: str, wanted: Iterable[Wanted]) -> None:
        """Make the possessions of an owner exactly those wanted."""
        asked = list(wanted)
        lacking = [each for each in asked if not self._is_there(owner, namespace, each)]
        await write_each(await self._without_foreign(owner, namespace, lacking), self._apply)
        names = {(each.resource, each.name) for each in asked}
        surplus = [
            (resource, found)
            for resource, cache in self.caches.items()
            for found in cache.index(BY_OWNER, owner.uid)
            if (resource, found.metadata.name) not in names
        ]
        await write_each(surplus, self._delete)

    async def release(self, owner_uid: str) -> None:
        """Take our finalizers off what a deleted owner leaves behind, so that garbage collection can finish."""
        domains = self.caches.get(COMPUTE_DOMAIN)
        for found in domains.index(BY_OWNER, owner_uid) if domains is not None else ():
            await remove_finalizer(self._client, COMPUTE_DOMAIN, found, additions.COMPUTE_DOMAIN_FINALIZER)

    def _is_there(self, owner: OwnerReference, namespace: str, wanted: Wanted) -> bool:
        found = self.caches[wanted.resource].get(Key(namespace, wanted.name))
        if found is None:
            return False
        return _is_foreign(found, wanted, owner) or found.metadata.annotations.get(DIGEST) == wanted.digest

    async def _without_foreign(self, owner: OwnerReference, namespace: str, lacking: list[Wanted]) -> list[Wanted]:
        """Return what is to be applied, now that it is known what is there without our label."""
        unseen: dict[Resource, list[str]] = {}
        for each in lacking:
            if self.caches[each.resource].get(Key(namespace, each.name)) is None:
                unseen.setdefault(each.resource, []).append(each.name)
        found = {
            (resource, each.metadata.name): each
            for resource, names in unseen.items()
            for each in await self._look_up(resource, namespace, names)
        }
        there = [(each, found.get((each.resource, each.name))) for each in lacking]
        return [each for each, other in there if other is None or not _is_foreign(other, each, owner)]

    async def _look_up(self, resource: Resource, namespace: str, names: list[str]) -> Sequence[Possession]:
        """Return those that exist; one is asked for by its name, many with one request."""
        if len(names) > 1:
            return (await self._client.list(resource, namespace, type=Possession)).items
        try:
            return [await self._client.get(resource, names[0], namespace, type=Possession)]
        except NotFound:
            return []

    async def _apply(self, wanted: Wanted) -> None:
        await self._client.apply(wanted.resource, wanted.manifest, field_manager=FIELD_MANAGER)

    async def _delete(self, item: tuple[Resource, Possession]) -> None:
        resource, found = item
        if found.metadata.deleting:
            await remove_finalizer(self._client, resource, found, additions.COMPUTE_DOMAIN_FINALIZER)
        else:
            await delete_exactly(self._client, resource, found)


def _is_foreign(found: Possession, wanted: Wanted, owner: OwnerReference) -> bool:
    """Say whether an object is somebody else's and will do; raises :class:`NameTaken` where it will not."""
    if any(each.uid == owner.uid for each in found.metadata.owner_references):
        return False
    if wanted.resource == SERVICE_ACCOUNT:
        return True
    raise NameTaken(
        f"{wanted.resource.kind} {found.metadata.namespace}/{wanted.name} is needed for {owner.kind} {owner.name} and "
        "belongs to somebody else; rename one of the two"
    )


def _owners(found: Possession) -> Iterable[Hashable]:
    return tuple(owner.uid for owner in found.metadata.owner_references)

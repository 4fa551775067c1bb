"""Objects the operator keeps for a PodCliqueSet without reading more of them than who they belong to.

:class:`AuxiliaryObjects` compares what is wanted with what is there, by name and recorded digest, and writes the
difference: create what is missing, change what is different, delete what nobody wants. An object of the right name that
belongs to another owner is never touched; that is an error the user has to resolve. The caches only hold what carries
our label, so before anything is made it is asked for. Another owner's ServiceAccount will do, though: it is a name to
bind rights to.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Final

from spinney.api.autoscaling import HORIZONTAL_POD_AUTOSCALER
from spinney.api.compute_domains import COMPUTE_DOMAIN
from spinney.api.core import SECRET, SERVICE, SERVICE_ACCOUNT
from spinney.api.meta import Metadata, OwnerReference
from spinney.api.rbac import ROLE, ROLE_BINDING
from spinney.api.resource import Resource
from spinney.api.struct import Struct
from spinney.backends import additions
from spinney.kube.cache import WatchCache
from spinney.kube.client import Client
from spinney.kube.errors import NotFound
from spinney.kube.keys import Key
from spinney.kube.manager import Manager
from spinney.kube.reconciling import Unread, delete_exactly, patch_exactly, remove_finalizer, write_each
from spinney.kube.retrying import exponential
from spinney.operator.caches import MANAGED
from spinney.operator.desired import corrections
from spinney.operator.desired.auxiliary import DIGEST, DesiredObject
from spinney.operator.status.last_errors import ReconcileFault

KINDS: Final = (SERVICE, SERVICE_ACCOUNT, ROLE, ROLE_BINDING, SECRET, HORIZONTAL_POD_AUTOSCALER)
BY_OWNER: Final = "owner uid"
_ROLE_UNSEEN_TRIES: Final = 6


class OwnedObject(Struct, frozen=True, kw_only=True):
    """An object, reduced to its metadata."""

    metadata: Metadata = Metadata()


class NameTaken(ReconcileFault):
    """An object that is needed exists and belongs to another owner."""


def owned_cache(manager: Manager, resource: Resource) -> WatchCache[OwnedObject]:
    """Return the cache of the managed objects of one kind, by owner."""
    return manager.cache(resource, OwnedObject, label_selector=MANAGED, indexes={BY_OWNER: _owners})


class AuxiliaryObjects:
    """Keeps the auxiliary objects of sets."""

    def __init__(self, client: Client, caches: Mapping[Resource, WatchCache[OwnedObject]]) -> None:
        self._client = client
        self.caches = caches

    @classmethod
    def of(cls, manager: Manager, *, mnnvl: bool, startup_order: bool = True) -> "AuxiliaryObjects":
        """Declare the caches with the manager, which runs them; Secrets are only for start-up order."""
        kinds = [kind for kind in KINDS if kind != SECRET or startup_order]
        if mnnvl:
            kinds.append(COMPUTE_DOMAIN)
        return cls(manager.client, {kind: owned_cache(manager, kind) for kind in kinds})

    async def keep(self, owner: OwnerReference, namespace: str, wanted: Iterable[DesiredObject]) -> None:
        """Make the auxiliary objects of an owner exactly those wanted."""
        asked = list(wanted)
        missing, different = await self._compare(owner, namespace, asked)
        bindings = [each for each in missing if each.resource == ROLE_BINDING]
        others = [each for each in missing if each.resource != ROLE_BINDING]
        await write_each(others, lambda each: self._client.create(each.resource, each.manifest, type=Unread))
        await write_each(bindings, self._bind)
        await write_each(different, lambda each: self._correct(*each))
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

    async def _compare(
        self, owner: OwnerReference, namespace: str, asked: Sequence[DesiredObject]
    ) -> tuple[list[DesiredObject], list[tuple[OwnedObject, DesiredObject]]]:
        """Return what is not there at all, and what is there and ours and not as it should be."""
        seen = {_place(each): self.caches[each.resource].get(Key(namespace, each.name)) for each in asked}
        unseen: dict[Resource, list[str]] = {}
        for resource, name in (place for place, found in seen.items() if found is None):
            unseen.setdefault(resource, []).append(name)
        unlabelled = {
            (resource, found.metadata.name): found
            for resource, names in unseen.items()
            for found in await self._look_up(resource, namespace, names)
        }
        missing: list[DesiredObject] = []
        different: list[tuple[OwnedObject, DesiredObject]] = []
        for each in asked:
            cached = seen[_place(each)]
            found = cached or unlabelled.get(_place(each))
            if found is None:
                missing.append(each)
            elif not _is_foreign(found, each, owner) and (cached is None or _digest(cached) != each.digest):
                different.append((found, each))
        return missing, different

    async def _bind(self, wanted: DesiredObject) -> None:
        """Create a RoleBinding; an API server refuses it until it has itself seen the Role, made a moment ago."""
        for failures in range(_ROLE_UNSEEN_TRIES):
            try:
                await self._client.create(wanted.resource, wanted.manifest, type=Unread)
            except NotFound:
                await self._client.runtime.clock.sleep(exponential(failures, first=0.05, longest=1.0))
            else:
                return
        await self._client.create(wanted.resource, wanted.manifest, type=Unread)

    async def _correct(self, found: OwnedObject, wanted: DesiredObject) -> None:
        metadata = wanted.manifest["metadata"]
        patch = [
            *corrections.of_texts("/metadata/labels", found.metadata.labels, metadata["labels"]),
            *corrections.of_texts("/metadata/annotations", found.metadata.annotations, metadata["annotations"]),
            *({"op": "add", "path": f"/{part}", "value": value} for part, value in wanted.body.items()),
        ]
        await patch_exactly(self._client, wanted.resource, found, patch, type=Unread)

    async def _look_up(self, resource: Resource, namespace: str, names: list[str]) -> Sequence[OwnedObject]:
        """Return those that exist; one is asked for by its name, many with one request."""
        if len(names) > 1:
            return (await self._client.list(resource, namespace, type=OwnedObject)).items
        try:
            return [await self._client.get(resource, names[0], namespace, type=OwnedObject)]
        except NotFound:
            return []

    async def _delete(self, item: tuple[Resource, OwnedObject]) -> None:
        resource, found = item
        if found.metadata.deleting:
            await remove_finalizer(self._client, resource, found, additions.COMPUTE_DOMAIN_FINALIZER)
        else:
            await delete_exactly(self._client, resource, found)


def _is_foreign(found: OwnedObject, wanted: DesiredObject, owner: OwnerReference) -> bool:
    """Tell whether an object is another owner's and will do; raises :class:`NameTaken` where it will not."""
    if any(each.uid == owner.uid for each in found.metadata.owner_references):
        return False
    if wanted.resource == SERVICE_ACCOUNT:
        return True
    raise NameTaken(
        f"{wanted.resource.kind} {found.metadata.namespace}/{wanted.name} is needed for {owner.kind} {owner.name} and "
        "belongs to another owner; rename one of the two"
    )


def _place(wanted: DesiredObject) -> tuple[Resource, str]:
    return wanted.resource, wanted.name


def _digest(found: OwnedObject) -> str | None:
    return found.metadata.annotations.get(DIGEST)


def _owners(found: OwnedObject) -> Iterable[Hashable]:
    return tuple(owner.uid for owner in found.metadata.owner_references)

"""What an API server serves: asked at the start, and again for as long as kinds are missing that may be installed.

A question about several groups reads the aggregated discovery: one answer for all of them. A server too old for it,
and a group whose own server is away (its entry is stale), are asked group by group.
"""

from collections.abc import Collection, Iterable
from typing import Final

import msgspec

from spinney.api.resource import Resource
from spinney.kube.client import Client
from spinney.kube.errors import NotFound
from spinney.runtime.tasks import together

AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


async def served(client: Client, resources: Iterable[Resource]) -> frozenset[Resource]:
    """Return those of ``resources`` that the API server serves."""
    wanted = frozenset(resources)
    versions = sorted({resource.api_version for resource in wanted})
    plurals: dict[str, frozenset[str]] = {}
    if len(versions) > 1:
        core = [version for version in versions if "/" not in version]
        named = [version for version in versions if "/" in version]
        asked = [_aggregated(client, *each) for each in (("/api", core), ("/apis", named)) if each[1]]
        for told in await together(*asked):
            plurals |= told
    untold = [version for version in versions if version not in plurals]
    for version, listed in zip(untold, await together(*(kinds_of(client, each) for each in untold)), strict=True):
        plurals[version] = frozenset(each.plural for each in listed)
    return frozenset(resource for resource in wanted if resource.plural in plurals[resource.api_version])


async def find_kind(client: Client, group: str, kind: str, version: str | None = None) -> Resource | None:
    """Return how a kind is served, in a version or in the one that its group prefers; ``None`` if it is not."""
    versions = [version] if version else await _preferred(client, group)
    for each in versions:
        for resource in await kinds_of(client, f"{group}/{each}" if group else each):
            if resource.kind == kind:
                return resource
    return None


async def _preferred(client: Client, group: str) -> list[str]:
    """Return the versions of a group, the preferred one first."""
    if not group:
        return ["v1"]
    try:
        told = await client.read(f"/apis/{group}", _GroupVersions)
    except NotFound:
        return []
    names = [told.preferred.version, *(each.version for each in told.versions)]
    return list(dict.fromkeys(name for name in names if name))


async def _aggregated(client: Client, path: str, versions: Collection[str]) -> dict[str, frozenset[str]]:
    """Return the plurals of those of ``versions`` about which the aggregated discovery is certain."""
    told = await client.read(path, _GroupDiscoveryList, headers={"accept": f"{AGGREGATED},application/json"})
    if told.kind != "APIGroupDiscoveryList":
        return {}
    plurals: dict[str, frozenset[str]] = dict.fromkeys(versions, frozenset())
    for group in told.items:
        for each in group.versions:
            version = f"{group.metadata.name}/{each.version}" if group.metadata.name else each.version
            if each.freshness == "Stale":
                plurals.pop(version, None)
            elif version in plurals:
                plurals[version] = frozenset(resource.resource for resource in each.resources)
    return plurals


async def kinds_of(client: Client, api_version: str) -> list[Resource]:
    """Return what is served of one group and version; nothing if that is not served."""
    group, _, version = api_version.rpartition("/")
    try:
        listed = await client.read(f"/apis/{api_version}" if group else f"/api/{api_version}", _ResourceList)
    except NotFound:
        return []
    found = listed.resources or ()
    return [Resource(group, version, it.kind, it.name, it.namespaced) for it in found if "/" not in it.name]


class _ListedResource(msgspec.Struct):
    name: str
    kind: str = ""
    namespaced: bool = True


class _GroupVersion(msgspec.Struct, frozen=True):
    version: str = ""


class _GroupVersions(msgspec.Struct, rename="camel"):
    versions: tuple[_GroupVersion, ...]
    preferred: _GroupVersion = msgspec.field(default=_GroupVersion(), name="preferredVersion")


class _ResourceList(msgspec.Struct):
    resources: tuple[_ListedResource, ...] | None


class _DiscoveredResource(msgspec.Struct):
    resource: str


class _DiscoveredVersion(msgspec.Struct):
    version: str
    resources: tuple[_DiscoveredResource, ...] = ()
    freshness: str = "Current"


class _GroupName(msgspec.Struct, frozen=True):
    name: str = ""  # the core group has none


class _DiscoveredGroup(msgspec.Struct):
    metadata: _GroupName = _GroupName()
    versions: tuple[_DiscoveredVersion, ...] = ()


class _GroupDiscoveryList(msgspec.Struct):
    kind: str = ""
    items: tuple[_DiscoveredGroup, ...] = ()

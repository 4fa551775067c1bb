"""Installing CRDs on any API server, and waiting until they are served."""

import asyncio
from collections.abc import Iterator, Sequence

from spinney.api.apiextensions import CUSTOM_RESOURCE_DEFINITION
from spinney.api.resource import Resource
from spinney.api.schema.crd import manifests
from spinney.api.struct import JSON
from spinney.kube.client import Client
from spinney.kube.discovery import served

CRD = CUSTOM_RESOURCE_DEFINITION
_SERVED_WITHIN = 60.0
_LOOK_AGAIN = 0.05


class CrdRefused(RuntimeError):
    """The API server took the manifest and will not serve it; the message carries its reason."""


async def install_crds(client: Client, crds: Sequence[JSON] | None = None) -> list[JSON]:
    """Apply CRDs (by default every kind Spinney reads) and return them as served, each of them Established."""
    wanted = manifests() if crds is None else crds
    applied = [await client.apply(CRD, manifest, field_manager="spinney-crds") for manifest in wanted]
    new = [crd for crd in applied if not _is_established(crd)]
    async with asyncio.timeout(_SERVED_WITHIN):
        established = [await _established(client, crd) for crd in applied]
        if new:
            await _discovered(client, new)
    return established


def condition_of(crd: JSON, kind: str) -> JSON | None:
    """Return one condition of a CRD, if it has been set."""
    conditions: list[JSON] = crd.get("status", {}).get("conditions") or []
    return next((condition for condition in conditions if condition["type"] == kind), None)


async def _established(client: Client, crd: JSON) -> JSON:
    """Follow one CRD until it is served."""
    name = crd["metadata"]["name"]
    while not _is_established(crd):
        listing = await client.list(CRD, field_selector=f"metadata.name={name}")
        if not listing.items:
            raise CrdRefused(f"CustomResourceDefinition {name} was deleted while it was being installed")
        crd = listing.items[0]
        if _is_established(crd):
            break
        version = listing.resource_version
        async for event in client.watch(CRD, field_selector=f"metadata.name={name}", resource_version=version):
            crd = event.object
            if event.type == "DELETED" or _is_established(crd):
                break
    return crd


async def _discovered(client: Client, crds: Sequence[JSON]) -> None:
    """Wait until discovery tells of the kinds, a little later: a process that starts asks it once what there is."""
    wanted = {resource for crd in crds for resource in _resources(crd)}
    while wanted - await served(client, {CRD, *wanted}):
        await client.runtime.clock.sleep(_LOOK_AGAIN)


def _resources(crd: JSON) -> Iterator[Resource]:
    spec = crd["spec"]
    for version in spec["versions"]:
        if version["served"]:
            kind, plural = spec["names"]["kind"], spec["names"]["plural"]
            yield Resource(spec["group"], version["name"], kind, plural, namespaced=spec["scope"] == "Namespaced")


def _is_established(crd: JSON) -> bool:
    names = condition_of(crd, "NamesAccepted")
    if names is not None and names["status"] == "False":
        raise CrdRefused(f"CustomResourceDefinition {crd['metadata']['name']}: {names['reason']}: {names['message']}")
    established = condition_of(crd, "Established")
    return established is not None and established["status"] == "True"

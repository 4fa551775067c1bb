"""Whatever still belongs to PodCliqueSets that were deleted."""

import asyncio
from collections.abc import Sequence

from spinney.api import kai, labels
from spinney.api.autoscaling import HORIZONTAL_POD_AUTOSCALER
from spinney.api.core import POD, SECRET, SERVICE, SERVICE_ACCOUNT
from spinney.api.grove import POD_CLIQUE, POD_CLIQUE_SCALING_GROUP, POD_CLIQUE_SET
from spinney.api.podgang import POD_GANG
from spinney.api.rbac import ROLE, ROLE_BINDING
from spinney.api.resource import Resource
from spinney.api.resource_claims import RESOURCE_CLAIM
from spinney.kube.client import Client

OWNED = (
    POD_CLIQUE_SET,
    POD_CLIQUE_SCALING_GROUP,
    POD_CLIQUE,
    POD_GANG,
    POD,
    SERVICE,
    SERVICE_ACCOUNT,
    ROLE,
    ROLE_BINDING,
    SECRET,
    HORIZONTAL_POD_AUTOSCALER,
    RESOURCE_CLAIM,
    kai.POD_GROUP,
)


async def leftovers(client: Client, namespace: str, sets: Sequence[str], *, within: float = 60.0) -> list[str]:
    """Return what is still there of some PodCliqueSets once it has stopped becoming less."""
    found: list[str] = []
    for name in sets:
        for resource in OWNED:
            found += await _remaining(client, namespace, resource, f"{labels.PART_OF}={name}", within)
    return found


async def _remaining(client: Client, namespace: str, resource: Resource, selector: str, within: float) -> list[str]:
    """Follow the objects of one kind until there is none, or for as long as the garbage collector may need."""
    listing = await client.list(resource, namespace, label_selector=selector)
    names = {found["metadata"]["name"] for found in listing.items}
    try:
        async with asyncio.timeout(within):
            if names:
                watch = client.watch(
                    resource, namespace, label_selector=selector, resource_version=listing.resource_version
                )
                async for event in watch:
                    name = event.object["metadata"]["name"]
                    names = names - {name} if event.type == "DELETED" else names | {name}
                    if not names:
                        break
    except TimeoutError:
        return [f"{resource.kind} {name}" for name in sorted(names)]
    return []

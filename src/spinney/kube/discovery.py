"""What an API server serves: asked once at start, for kinds that may or may not be installed."""

from collections.abc import Iterable

import msgspec

from spinney.api.resource import Resource
from spinney.kube.client import Client
from spinney.kube.errors import NotFound


class _ServedResource(msgspec.Struct):
    name: str


class _ResourceList(msgspec.Struct):
    resources: tuple[_ServedResource, ...] = ()


async def served(client: Client, resources: Iterable[Resource]) -> frozenset[Resource]:
    """Return those of ``resources`` that the API server serves, asking once per group and version."""
    wanted = list(resources)
    answers: dict[str, frozenset[str]] = {}
    for version in dict.fromkeys(resource.api_version for resource in wanted):
        path = f"/apis/{version}" if "/" in version else f"/api/{version}"
        try:
            answer = await client.raw("GET", path)
        except NotFound:
            answers[version] = frozenset()
        else:
            listed = msgspec.json.decode(answer.body, type=_ResourceList)
            answers[version] = frozenset(resource.name for resource in listed.resources)
    return frozenset(resource for resource in wanted if resource.plural in answers[resource.api_version])

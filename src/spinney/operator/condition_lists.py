"""Whether several writers may each own some conditions of a kind.

Our CRDs declare ``status.conditions`` a list keyed by type, so server-side apply keeps the conditions of operator and
scheduler apart. A CRD that somebody else installed, and that is never overwritten, may not: there the list belongs to
its last writer, and must be written whole, from the version it was read from.
"""

from spinney.api.apiextensions import CUSTOM_RESOURCE_DEFINITION
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.kube.client import Client
from spinney.kube.errors import Forbidden, NotFound


async def are_keyed(client: Client, resource: Resource) -> bool:
    """Say whether the installed CRD keys its conditions by type; where it cannot be read, ours is assumed."""
    try:
        crd: JSON = await client.get(CUSTOM_RESOURCE_DEFINITION, f"{resource.plural}.{resource.group}")
    except (NotFound, Forbidden):
        return True
    for version in crd["spec"]["versions"]:
        if version["name"] == resource.version:
            schema = version.get("schema", {}).get("openAPIV3Schema", {})
            status = schema.get("properties", {}).get("status", {}).get("properties", {})
            return bool(status.get("conditions", {}).get("x-kubernetes-list-type") == "map")
    return True

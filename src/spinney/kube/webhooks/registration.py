"""To whom a webhook configuration belongs: it must not outlive those who answer."""

from spinney.api.meta import Metadata, owner_reference
from spinney.api.rbac import CLUSTER_ROLE
from spinney.api.struct import JSON, convert, to_json
from spinney.kube.client import Client
from spinney.kube.errors import Forbidden, NotFound


async def owned_by_role(client: Client, name: str) -> list[JSON]:
    """Return the owner references of a configuration that goes when the process's ClusterRole is uninstalled."""
    try:
        role = await client.get(CLUSTER_ROLE, name)
    except (NotFound, Forbidden):  # installed in another way, which removes it in another way
        return []
    return [to_json(owner_reference(CLUSTER_ROLE, convert(Metadata, role["metadata"]), block=False))]

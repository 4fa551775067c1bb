"""How the API server is told of webhooks: what a configuration says, to whom it belongs, and its end."""

import base64

import structlog

from spinney.api.meta import Metadata, owner_reference
from spinney.api.rbac import CLUSTER_ROLE
from spinney.api.resource import Resource
from spinney.api.struct import JSON, convert, to_json
from spinney.kube.client import Client
from spinney.kube.errors import Forbidden, NotFound
from spinney.kube.webhooks.server import ServicePlace

log = structlog.get_logger()


def configuration(
    resource: Resource, name: str, place: ServicePlace, path: str, authority: bytes, /, **webhook: object
) -> JSON:
    """Return a configuration with one webhook, which is reached through a Service and trusted by its authority."""
    service = {"name": place.name, "namespace": place.namespace, "path": path, "port": place.port}
    reached = {"clientConfig": {"service": service, "caBundle": base64.b64encode(authority).decode()}}
    webhooks = [{**reached, "admissionReviewVersions": ["v1"], "sideEffects": "None", **webhook}]
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name},
        "webhooks": webhooks,
    }


async def owned_by_role(client: Client, name: str) -> list[JSON]:
    """Return the owner references of a configuration that goes when the process's ClusterRole is uninstalled."""
    try:
        role = await client.get(CLUSTER_ROLE, name)
    except (NotFound, Forbidden):  # installed in another way, which removes it in another way
        return []
    return [to_json(owner_reference(CLUSTER_ROLE, convert(Metadata, role["metadata"]), block=False))]


async def unregister(client: Client, resource: Resource, name: str) -> None:
    """Have the API server no longer ask, where it was told to before."""
    try:
        await client.delete(resource, name)
    except NotFound:
        return
    except Forbidden as error:  # rights of an older installation; where it was never on, nothing is left behind
        log.warning("whether a webhook is still registered cannot be found out", configuration=name, error=str(error))

"""Adding and removing finalizers, so that nobody else's finalizer is ever lost.

A merge patch replaces the whole list, therefore it carries the uid and the resource version it was computed from: if
another client wrote in between, the server answers ``Conflict`` and the reconcile looks again.
"""

from collections.abc import Sequence
from typing import Any

from spinney.api.resource import Resource
from spinney.kube.client import Client
from spinney.kube.errors import NotFound


async def add_finalizer(client: Client, resource: Resource, obj: Any, finalizer: str) -> bool:
    """Put ``finalizer`` on the object; returns whether anything had to be written."""
    present: Sequence[str] = obj.metadata.finalizers
    if finalizer in present:
        return False
    await _write(client, resource, obj, [*present, finalizer])
    return True


async def remove_finalizer(client: Client, resource: Resource, obj: Any, finalizer: str) -> bool:
    """Take ``finalizer`` off the object; returns whether anything had to be written. One already gone is fine."""
    present: Sequence[str] = obj.metadata.finalizers
    if finalizer not in present:
        return False
    try:
        await _write(client, resource, obj, [item for item in present if item != finalizer])
    except NotFound:
        return False
    return True


async def _write(client: Client, resource: Resource, obj: Any, finalizers: list[str]) -> None:
    metadata = obj.metadata
    patch = {
        "metadata": {
            "finalizers": finalizers,
            "uid": metadata.uid,
            "resourceVersion": metadata.resource_version,
        }
    }
    await client.patch(resource, metadata.name, patch, metadata.namespace)

"""How a status is written: what differs, to exactly the object it was computed from.

A merge patch, because each status here has one writer and the API server does half the work for one that it does for
server-side apply (docs/performance/operator.md).
"""

# ruff: noqa: A002 - "type" is the word for what an answer is decoded as

from typing import Protocol, TypeVar

import msgspec

from spinney.api.merge_patch import merge_patch
from spinney.api.meta import Metadata
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.kube.client import Client
from spinney.kube.errors import Conflict, NotFound
from spinney.kube.keys import key_of
from spinney.kube.reconciling import Latest


class WithStatus(Protocol):
    """An object that has a status."""

    @property
    def metadata(self) -> Metadata: ...

    @property
    def status(self) -> msgspec.Struct: ...


S = TypeVar("S", bound=msgspec.Struct)
T = TypeVar("T")
W = TypeVar("W", bound=WithStatus)


def keeping_errors(wanted: S, found: msgspec.Struct) -> S:
    """Return a status with the errors of the one found: what it says about errors has a writer of its own."""
    told = getattr(found, "last_errors", None)
    return wanted if told is None else msgspec.structs.replace(wanted, last_errors=told)


def says_the_same(wanted: msgspec.Struct, found: msgspec.Struct) -> bool:
    """Tell whether a status is as wanted."""
    return keeping_errors(wanted, found) == found


async def patch_status(
    client: Client,
    resource: Resource,
    found: WithStatus,
    status: msgspec.Struct,
    *,
    type: type[T],
    shared: bool = False,
) -> T:
    """Give exactly the object found another status; one that has others writing to it only if nobody wrote since."""
    metadata = found.metadata
    expected = {"uid": metadata.uid} | ({"resourceVersion": metadata.resource_version} if shared else {})
    patch = {"metadata": expected, "status": merge_patch(_plain(found.status), _plain(status))}
    return await client.patch(resource, metadata.name, patch, metadata.namespace, subresource="status", type=type)


async def write_status(
    client: Client, resource: Resource, found: W, status: msgspec.Struct, *, latest: Latest[W], type: type[W]
) -> W:
    """Write a status that differs from the one found; returns the object as it is then. One that is gone stays so."""
    if says_the_same(status, found.status):
        return found
    try:
        stored = await patch_status(client, resource, found, keeping_errors(status, found.status), type=type)
    except (NotFound, Conflict):
        return found  # it is gone, or another has its name
    return latest.wrote(key_of(found), stored)


def _plain(status: msgspec.Struct) -> JSON:
    plain: JSON = msgspec.to_builtins(status)
    return plain

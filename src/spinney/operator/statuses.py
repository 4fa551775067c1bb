"""How a status is written: applied as a whole, to exactly the object it was computed from, and only when it differs."""

# ruff: noqa: A002 - "type" is the word for what an answer is decoded as

from typing import Final, Protocol, TypeVar

import msgspec

from spinney.api.meta import Metadata
from spinney.api.resource import Resource
from spinney.kube.client import Client
from spinney.kube.errors import NotFound
from spinney.kube.keys import Key
from spinney.operator.writing import Latest

FIELD_MANAGER: Final = "spinney-operator"


class WithStatus(Protocol):
    """An object that has a status."""

    @property
    def metadata(self) -> Metadata: ...

    @property
    def status(self) -> msgspec.Struct: ...


W = TypeVar("W", bound=WithStatus)


def status_manifest(api_version: str, kind: str, metadata: Metadata, status: msgspec.Struct) -> dict[str, object]:
    """Return what is applied to an object's status: which object, exactly, and the status."""
    who = {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid}
    return {"apiVersion": api_version, "kind": kind, "metadata": who, "status": msgspec.to_builtins(status)}


def says_the_same(wanted: msgspec.Struct, found: msgspec.Struct) -> bool:
    """Say whether a status is as wanted; what it says about errors has a writer of its own."""
    told = getattr(found, "last_errors", None)
    return (wanted if told is None else msgspec.structs.replace(wanted, last_errors=told)) == found


async def write_status(
    client: Client, resource: Resource, found: W, status: msgspec.Struct, *, latest: Latest[W], type: type[W]
) -> W:
    """Write a status that differs from the one found; returns the object as it is then. One that is gone stays so."""
    if says_the_same(status, found.status):
        return found
    metadata = found.metadata
    body = status_manifest(resource.api_version, resource.kind, metadata, status)
    try:
        stored = await client.apply(resource, body, field_manager=FIELD_MANAGER, subresource="status", type=type)
    except NotFound:
        return found
    return latest.wrote(Key(metadata.namespace or "", metadata.name), stored)

"""What tells objects apart, and versions of one object."""

import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from spinney.api.keys import Key

__all__ = ["Key", "ObjectIdentity", "identify", "key_of"]


class ObjectIdentity(NamedTuple):
    """What tells one version of one incarnation of an object from another."""

    key: Key
    uid: str
    resource_version: str


def identify(obj: Any) -> ObjectIdentity:
    """Read the identity of a decoded object: a struct with ``metadata``, or a JSON object."""
    if isinstance(obj, Mapping):
        metadata = obj["metadata"]
        return ObjectIdentity(
            Key(sys.intern(metadata.get("namespace") or ""), metadata["name"]),
            metadata.get("uid") or "",
            metadata.get("resourceVersion") or "",
        )
    metadata = obj.metadata
    return ObjectIdentity(
        Key(sys.intern(metadata.namespace or ""), metadata.name),
        metadata.uid or "",
        metadata.resource_version or "",
    )


def key_of(obj: Any) -> Key:
    """Return the key of a decoded object."""
    return identify(obj).key

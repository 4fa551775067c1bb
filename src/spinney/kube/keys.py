"""What tells objects apart, and versions of one object."""

import sys
from typing import Any, NamedTuple

import msgspec

from spinney.api.keys import Key

__all__ = ["Identified", "Key", "ObjectIdentity", "identify", "key_of", "uid_of"]


class ObjectIdentity(NamedTuple):
    """What tells one version of one incarnation of an object from another."""

    key: Key
    uid: str
    resource_version: str


class _Uid(msgspec.Struct, frozen=True):
    uid: str


class Identified(msgspec.Struct, frozen=True):
    """An object of which only the uid is read: which one was created, which one has the name now."""

    metadata: _Uid


def identify(obj: Any) -> ObjectIdentity:
    """Read the identity of a decoded object: a struct with ``metadata``, or a JSON object."""
    if isinstance(obj, dict):
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


def uid_of(obj: Any) -> str:
    """Return the uid of a decoded object."""
    return (obj["metadata"].get("uid") if isinstance(obj, dict) else obj.metadata.uid) or ""


def key_of(obj: Any) -> Key:
    """Return the key of a decoded object."""
    if isinstance(obj, dict):
        return identify(obj).key
    return Key(sys.intern(obj.metadata.namespace or ""), obj.metadata.name)

"""How an object is named inside its kind: namespace and name."""

import sys
from collections.abc import Mapping
from typing import Any, NamedTuple


class Key(NamedTuple):
    """The namespace and name of an object; the namespace is empty for cluster-scoped kinds."""

    namespace: str
    name: str

    @classmethod
    def parse(cls, text: str) -> "Key":
        """Read back what ``str(key)`` wrote."""
        namespace, _, name = text.rpartition("/")
        return cls(namespace, name)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Identity(NamedTuple):
    """What tells one version of one incarnation of an object from another."""

    key: Key
    uid: str
    resource_version: str


def identify(obj: Any) -> Identity:
    """Read the identity of a decoded object: a struct with ``metadata``, or a JSON object."""
    if isinstance(obj, Mapping):
        metadata = obj["metadata"]
        return Identity(
            Key(sys.intern(metadata.get("namespace") or ""), metadata["name"]),
            metadata.get("uid") or "",
            metadata.get("resourceVersion") or "",
        )
    metadata = obj.metadata
    return Identity(
        Key(sys.intern(metadata.namespace or ""), metadata.name),
        metadata.uid or "",
        metadata.resource_version or "",
    )


def key_of(obj: Any) -> Key:
    """Return the key of a decoded object."""
    return identify(obj).key

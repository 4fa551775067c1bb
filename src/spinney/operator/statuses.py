"""How a status is written."""

import msgspec

from spinney.api.meta import Metadata


def status_manifest(api_version: str, kind: str, metadata: Metadata, status: msgspec.Struct) -> dict[str, object]:
    """Return what is applied to an object's status: which object, exactly, and the status."""
    who = {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid}
    return {"apiVersion": api_version, "kind": kind, "metadata": who, "status": msgspec.to_builtins(status)}

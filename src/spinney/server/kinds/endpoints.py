"""Which part of an object is written at which endpoint: the status at ``status``, everything else at the main one."""

from typing import Final

from spinney.api.struct import JSON
from spinney.server.kinds.kind import Kind

OF_STATUS: Final[tuple[str, ...]] = ("apiVersion", "kind", "metadata", "status")
"""What the endpoint of a status is about."""


def keep_other_endpoints(kind: Kind, subresource: str, obj: JSON, old: JSON) -> None:
    """Undo what a write, or a webhook that was asked about it, did to what belongs to another endpoint."""
    if subresource == "status":
        for name in [*obj]:
            if name not in OF_STATUS:
                del obj[name]
        for name, value in old.items():
            if name not in {"status", "metadata"}:
                obj[name] = value
        if kind.storage == "pods" and obj["metadata"].get("ownerReferences") != old["metadata"].get("ownerReferences"):
            obj["metadata"].pop("ownerReferences", None)
            if "ownerReferences" in old["metadata"]:
                obj["metadata"]["ownerReferences"] = old["metadata"]["ownerReferences"]
        if kind.custom:
            managed = obj["metadata"].get("managedFields")
            obj["metadata"] = {**old["metadata"]}
            if managed is not None:
                obj["metadata"]["managedFields"] = managed
    elif kind.status:
        if "status" in old:
            obj["status"] = old["status"]
        else:
            obj.pop("status", None)

"""JSON merge patch (RFC 7386)."""

from typing import Any

from spinney.api.struct import JSON


def merge(target: Any, patch: Any) -> Any:
    """Return ``target`` changed by ``patch``; neither is changed, unchanged parts are shared."""
    if not isinstance(patch, dict):
        return patch
    merged: JSON = {**target} if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge(merged.get(name), value)
    return merged

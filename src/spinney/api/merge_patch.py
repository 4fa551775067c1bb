"""JSON merge patches (RFC 7386): made from the object that is there and the one that is wanted, and applied."""

from typing import Any

from spinney.api.struct import JSON


def merge_patch(found: JSON, wanted: JSON) -> JSON:
    """Return the smallest merge patch that turns one object into the other; lists are replaced whole."""
    patch: JSON = {name: None for name in found if name not in wanted}
    for name, value in wanted.items():
        present = found.get(name)
        if isinstance(present, dict) and isinstance(value, dict):
            if inner := merge_patch(present, value):
                patch[name] = inner
        elif present != value or name not in found:
            patch[name] = value
    return patch


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

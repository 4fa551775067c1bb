"""JSON merge patches (RFC 7386), made and applied, and the pointers of JSON patches (RFC 6901)."""

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


def pointer(base: str, key: str) -> str:
    """Return the pointer to an entry of the object at ``base``; any key may be one."""
    return f"{base}/{key.replace('~', '~0').replace('/', '~1')}"

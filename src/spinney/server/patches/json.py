"""JSON patch (RFC 6902), applied in place to a private copy."""

from typing import Any

import msgspec

_LIMIT = 10_000
_MAX_COPIED = 3 * 1024 * 1024
_MOST_DIGITS = 18  # of an index: no list has more items
_OPERATIONS = ("add", "remove", "replace", "move", "copy", "test")


class PatchFailed(ValueError):
    """An operation cannot be applied to this document."""


class PatchTooLong(PatchFailed):
    """A patch has more operations than are applied."""


def apply_json_patch(document: Any, patch: Any) -> Any:
    """Apply every operation in order and return the document; raise :class:`PatchFailed` at the first that fails."""
    if not isinstance(patch, list):
        raise PatchFailed("a JSON patch is an array of operations")
    if len(patch) > _LIMIT:
        raise PatchTooLong(f"a JSON patch has at most {_LIMIT} operations, this one has {len(patch)}")
    holder = {"": document}
    copied = 0
    for index, operation in enumerate(patch):
        if not isinstance(operation, dict) or operation.get("op") not in _OPERATIONS:
            raise PatchFailed(f"operation {index} needs an op that is one of {', '.join(_OPERATIONS)}")
        try:
            copied += _apply(holder, operation, may_copy=_MAX_COPIED - copied)
        except PatchFailed as error:
            raise PatchFailed(f"operation {index} ({operation['op']} {operation.get('path')}): {error}") from None
    return holder[""]


def _apply(holder: dict[str, Any], operation: dict[str, Any], *, may_copy: int) -> int:
    """Apply one operation; return how many bytes it copied: twenty copies of copies would be gigabytes."""
    path = _steps(operation, "path")
    match operation["op"]:
        case "add":
            _add(holder, path, _value(operation))
        case "replace":
            _replace(holder, path, _value(operation))
        case "remove":
            _remove(holder, path)
        case "move":
            source = _steps(operation, "from")
            moved = _get(holder, source)
            _remove(holder, source)
            _add(holder, path, moved)
        case "copy":
            encoded = msgspec.json.encode(_get(holder, _steps(operation, "from")))
            if len(encoded) > may_copy:
                raise PatchFailed(f"the copies of a JSON patch may have {_MAX_COPIED} bytes together")
            _add(holder, path, msgspec.json.decode(encoded))
            return len(encoded)
        case "test":
            found = _get(holder, path)
            if found != operation.get("value"):
                raise PatchFailed("the value is another one")
    return 0


def _value(operation: dict[str, Any]) -> Any:
    if "value" not in operation:
        raise PatchFailed("has no value")
    return operation["value"]


def _steps(operation: dict[str, Any], name: str) -> list[str]:
    pointer = operation.get(name)
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise PatchFailed(f"{name} must be a JSON pointer, found {pointer!r}")
    return [step.replace("~1", "/").replace("~0", "~") for step in ("" + pointer).split("/")]


def _get(holder: Any, path: list[str]) -> Any:
    at = holder
    for step in path:
        if isinstance(at, dict):
            if step not in at:
                raise PatchFailed(f"there is no {step!r}")
            at = at[step]
        elif isinstance(at, list):
            at = at[_index(at, step, end=False)]
        else:
            raise PatchFailed(f"there is no {step!r}")
    return at


def _add(holder: dict[str, Any], path: list[str], value: Any) -> None:
    parent = _get(holder, path[:-1])
    if isinstance(parent, dict):
        parent[path[-1]] = value
    elif isinstance(parent, list):
        parent.insert(_index(parent, path[-1], end=True), value)
    else:
        raise PatchFailed("the parent is neither an object nor an array")


def _replace(holder: dict[str, Any], path: list[str], value: Any) -> None:
    """Put a value in the place of another; of an object, also where there was none, as kube-apiserver does it."""
    parent = _get(holder, path[:-1])
    if isinstance(parent, list):
        parent[_index(parent, path[-1], end=False)] = value
    elif isinstance(parent, dict):
        parent[path[-1]] = value
    else:
        raise PatchFailed("the parent is neither an object nor an array")


def _remove(holder: dict[str, Any], path: list[str]) -> None:
    _get(holder, path)
    parent = _get(holder, path[:-1])
    if isinstance(parent, list):
        del parent[_index(parent, path[-1], end=False)]
    else:
        del parent[path[-1]]


def _index(items: list[Any], step: str, *, end: bool) -> int:
    if step == "-" and end:
        return len(items)
    if not step.isdecimal() or len(step) > _MOST_DIGITS or int(step) >= len(items) + end:
        raise PatchFailed(f"there is no item {step!r}")
    return int(step)

"""Sets of fields: which parts of an object a manager owns.

A path is a tuple of steps as they stand in ``FieldsV1``: ``f:name`` for a field, ``k:{...}`` for an item of a list
that is a map, ``v:...`` for an item of a set. A set of fields is a Python set of paths, so that the algebra of
ownership is the algebra of sets.
"""

from collections.abc import Set
from functools import lru_cache
from typing import Any

import msgspec

from spinney.api.struct import JSON
from spinney.server.kinds.shape import MergeShape

Path = tuple[str, ...]

_SYSTEM_METADATA = (
    "name",
    "namespace",
    "generateName",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
)


def owned_part(obj: JSON) -> JSON:
    """Return ``obj`` without what belongs to nobody: its type, and the metadata that the server keeps."""
    part = {name: value for name, value in obj.items() if name not in {"apiVersion", "kind", "metadata"}}
    metadata = {name: value for name, value in obj.get("metadata", {}).items() if name not in _SYSTEM_METADATA}
    if metadata:
        part["metadata"] = metadata
    return part


def fields_of(value: Any, shape: MergeShape) -> set[Path]:
    """Return the fields that ``value`` sets."""
    found: set[Path] = set()
    _collect(value, shape, (), found)
    return found


def _collect(value: Any, shape: MergeShape, path: Path, found: set[Path]) -> None:
    parts = parts_of(value, shape)
    if not parts:
        if path and not (isinstance(value, list) and shape.associative):  # a list of no items sets nothing
            found.add(path)
        return
    for step, (child, child_shape) in parts.items():
        if isinstance(value, list):
            found.add((*path, step))
        _collect(child, child_shape, (*path, step), found)


def repeated_item(value: Any, shape: MergeShape, path: Path = ()) -> tuple[Path, str] | None:
    """Return where a list has two items with one key, and the step to them; ``None`` if no list has."""
    parts = parts_of(value, shape)
    if parts is None:
        return None
    if isinstance(value, list) and len(parts) < len(value):
        steps = [item_step(item, shape) for item in value]
        return path, next(step for index, step in enumerate(steps) if step in steps[:index])
    for step, (child, child_shape) in parts.items():
        if isinstance(child, dict | list) and (found := repeated_item(child, child_shape, (*path, step))):
            return found
    return None


def parts_of(value: Any, shape: MergeShape) -> dict[str, tuple[Any, MergeShape]] | None:
    """Return what a value consists of, by step; ``None`` if it is owned as a whole."""
    if isinstance(value, dict) and shape.merge != "atomic":
        return {f"f:{name}": (child, shape.child(name)) for name, child in value.items()}
    if isinstance(value, list) and shape.associative:
        return {item_step(item, shape): (item, shape.item) for item in value}
    return None


def item_step(item: Any, shape: MergeShape) -> str:
    """Return the step to an item of a list that is a map or a set."""
    if shape.merge == "map" and isinstance(item, dict):
        if len(shape.keys) == 1 and isinstance(name := item.get(shape.keys[0]), str):
            return f'k:{{"{shape.keys[0]}":{_quoted(name)}}}'
        keys = {key: value for key, value in zip(shape.keys, shape.key_of(item), strict=True) if value is not None}
        return "k:" + msgspec.json.encode(dict(sorted(keys.items()))).decode()
    return "v:" + msgspec.json.encode(item).decode()


@lru_cache(maxsize=4096)
def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()


def changes(old: Any, new: Any, shape: MergeShape) -> tuple[set[Path], set[Path]]:
    """Return the fields that ``new`` sets to something else than ``old`` (or newly), and those it removes."""
    comparison = _Comparison()
    comparison.compare(old, new, shape, ())
    return comparison.changed, comparison.removed


class _Comparison:
    """Walks two values side by side and notes what differs; mutable."""

    def __init__(self) -> None:
        self.changed: set[Path] = set()
        self.removed: set[Path] = set()

    def compare(self, old: Any, new: Any, shape: MergeShape, path: Path) -> None:
        if old is new or old == new:
            return
        if isinstance(old, dict) and isinstance(new, dict) and shape.merge != "atomic":
            self._compare_objects(old, new, shape, path)
        elif isinstance(old, list) and isinstance(new, list) and shape.associative:
            self._compare_items(old, new, shape, path)
        else:
            self.changed.add(path)
            if parts_of(old, shape) is not None:
                _collect(old, shape, path, self.removed)
                self.removed.discard(path)

    def _compare_objects(self, old: JSON, new: JSON, shape: MergeShape, path: Path) -> None:
        for name, value in old.items():
            if name not in new:
                _whole(value, shape.child(name), (*path, f"f:{name}"), self.removed)
            elif new[name] is not value:
                self.compare(value, new[name], shape.child(name), (*path, f"f:{name}"))
        for name, value in new.items():
            if name not in old:
                _whole(value, shape.child(name), (*path, f"f:{name}"), self.changed)

    def _compare_items(self, old: list[Any], new: list[Any], shape: MergeShape, path: Path) -> None:
        before = {item_step(item, shape): item for item in old}
        after = {item_step(item, shape): item for item in new}
        for step, value in before.items():
            if step not in after:
                _whole(value, shape.item, (*path, step), self.removed)
            else:
                self.compare(value, after[step], shape.item, (*path, step))
        for step, value in after.items():
            if step not in before:
                _whole(value, shape.item, (*path, step), self.changed)


def _whole(value: Any, shape: MergeShape, path: Path, found: set[Path]) -> None:
    found.add(path)
    _collect(value, shape, path, found)


def to_fields_v1(paths: Set[Path]) -> JSON:
    """Return a set of fields as ``FieldsV1``."""
    root: JSON = {}
    for path in sorted(paths):  # so that a field comes before those below it
        at = root
        for depth, step in enumerate(path):
            below = at.get(step)
            if below is None:
                if not at and path[:depth] in paths:
                    at["."] = {}
                below = at[step] = {}
            at = below
    return root


def from_fields_v1(fields: JSON) -> set[Path]:
    """Return the set that a ``FieldsV1`` stands for."""
    found: set[Path] = set()
    _read(fields, (), found)
    return found


def has_path(fields: JSON, path: Path) -> bool:
    """Tell whether a ``FieldsV1`` contains a path."""
    node: Any = fields
    for step in path:
        node = node.get(step)
        if node is None:
            return False
    return not node or "." in node


def _read(node: JSON, path: Path, found: set[Path]) -> None:
    if path and (not node or "." in node):
        found.add(path)
    for step, child in node.items():
        if step != "." and isinstance(child, dict):
            _read(child, (*path, step), found)


def shown(path: Path) -> str:
    """Return a path as messages show it: ``.spec.containers[name="c"].image``."""
    text = ""
    for step in path:
        kind, _, rest = step.partition(":")
        if kind == "f":
            text += f".{rest}"
        elif kind == "k":
            keys = msgspec.json.decode(rest)
            text += "[" + ",".join(f"{key}={msgspec.json.encode(value).decode()}" for key, value in keys.items()) + "]"
        else:
            text += f"[={rest}]"
    return text

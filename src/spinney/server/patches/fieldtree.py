"""Sets of fields in the form in which they are stored (``FieldsV1``), changed without being read whole.

A node is an object: a leaf stands for a field, an inner node for what lies below it, and ``.`` in an inner node says
that the field itself belongs to the set too. Every function leaves its arguments alone and shares what is unchanged.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from spinney.api.struct import JSON
from spinney.server.kinds.shape import MergeShape
from spinney.server.patches.fieldset import Path, parts_of

_COMPOSITE: Final = (dict, list)
_ITEM_STEPS: Final[Mapping[str, type]] = {"k": dict, "v": object, "i": int}  # what stands behind each, in JSON


def tree_of(value: Any, shape: MergeShape) -> JSON:
    """Return the fields of a value that is new: what ``fields_of`` returns, as a tree, and lists of no items too.

    To apply a list of no items sets nothing; to create an object with one does.
    """
    if isinstance(value, dict) and shape.merge != "atomic":
        return {
            f"f:{name}": tree_of(child, shape.child(name)) if isinstance(child, _COMPOSITE) else {}
            for name, child in sorted(value.items())
        }
    tree: JSON = {}
    parts = parts_of(value, shape) or {}
    for step in sorted(parts):
        below = tree_of(*parts[step])
        tree[step] = {".": {}, **below} if below else below
    return tree


def is_tree(node: Any) -> bool:
    """Tell whether a value is a set of fields in the form in which they are stored."""
    return isinstance(node, dict) and all(_is_step(step) and is_tree(below) for step, below in node.items())


def _is_step(step: str) -> bool:
    kind, separator, rest = step.partition(":")
    if not separator:
        return kind == "."
    if kind == "f":
        return True
    if kind not in _ITEM_STEPS:
        return False
    try:
        value = msgspec.json.decode(rest)
    except msgspec.DecodeError:
        return False
    return isinstance(value, _ITEM_STEPS[kind])


def with_paths(tree: JSON, paths: Iterable[Path]) -> JSON:
    """Return ``tree`` with the given fields added."""
    for path in paths:
        tree = _with(tree, path)
    return tree


def without_paths(tree: JSON, paths: Iterable[Path]) -> JSON:
    """Return ``tree`` without the given fields; those below them stay."""
    for path in paths:
        tree = _without(tree, path) or {}
    return tree


def _with(node: JSON, path: Path) -> JSON:
    step, rest = path[0], path[1:]
    child: JSON | None = node.get(step)
    if not rest:
        if child is not None and (not child or "." in child):
            return node
        changed = {".": {}, **child} if child else {}
    else:
        changed = _with({".": {}} if child == {} else child or {}, rest)
    if child is not None:
        return {**node, step: changed}
    return dict(sorted({**node, step: changed}.items()))


def _without(node: JSON, path: Path) -> JSON | None:
    """Return what is left of a node; ``None`` if that is nothing."""
    step, rest = path[0], path[1:]
    child: JSON | None = node.get(step)
    if child is None:
        return node
    changed: JSON | None
    if rest:
        changed = _without(child, rest) if child else child
    elif not child:
        changed = None
    else:
        changed = {name: below for name, below in child.items() if name != "."}
    if changed is child:
        return node
    left = {name: below for name, below in node.items() if name != step}
    if changed is not None:
        left = {**node, step: changed}
    if list(left) == ["."]:
        return {}
    return left or None

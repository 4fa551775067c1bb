"""How the parts of an object merge: which lists are maps or sets, which objects are taken whole.

A shape says only what differs from the rule "objects merge field by field, lists are replaced". Strategic merge
patches, server-side apply and ownership of fields all read the same shapes. For built-in kinds they are written down
in :mod:`spinney.server.kinds.shapes`; for custom resources they come from the schema.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from spinney.api.struct import JSON

Merge = Literal["granular", "atomic", "map", "set"]


@dataclass(frozen=True, slots=True)
class MergeShape:
    """How one value merges.

    ``granular`` objects merge by field and ``atomic`` values are replaced; ``map`` lists merge their items by
    ``keys``, ``set`` lists by value. ``items`` is the shape of a list's items or of an object's undeclared fields.
    """

    merge: Merge = "granular"
    keys: tuple[str, ...] = ()
    merge_key: str = ""
    key_defaults: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, "MergeShape"] = field(default_factory=dict)
    items: "MergeShape | None" = None
    listed: bool = False  # an atomic value that is a list of objects

    def child(self, name: str) -> "MergeShape":
        """Return the shape of the field ``name``."""
        found = self.fields.get(name)
        if found is not None:
            return found
        return self.items if self.items is not None else GRANULAR

    @property
    def item(self) -> "MergeShape":
        """The shape of a list's items."""
        return self.items if self.items is not None else GRANULAR

    @property
    def associative(self) -> bool:
        """Whether a list of this shape is merged item by item."""
        return self.merge in {"map", "set"}

    @property
    def strategic_key(self) -> str:
        """The one key by which strategic merge patches find items."""
        return self.merge_key or (self.keys[0] if self.keys else "")

    def key_of(self, item: JSON) -> tuple[object, ...]:
        """Return the values that identify an item of a ``map`` list."""
        return tuple(item.get(key, self.key_defaults.get(key)) for key in self.keys)


_COMPOSITE = (dict, list)  # a union would be made anew at each look

_NOTHING: Mapping[str, Any] = {}

GRANULAR = MergeShape()
ATOMIC = MergeShape(merge="atomic")
ATOMIC_ITEMS = MergeShape(merge="atomic", listed=True)


def misshapen(value: Any, shape: MergeShape, old: Any = None) -> str | None:
    """Return the path of the first value that is no object, or no list, where the shape has one; null is neither.

    Parts that are the same in ``old``, which was looked at before, are passed over.
    """
    found = _misshapen(value, shape, old)
    return None if found is None else found.removeprefix(".")


def _misshapen(value: Any, shape: MergeShape, old: Any = None) -> str | None:
    """Return the path from ``value`` on; it is put together on the way back, which nearly every look is spared."""
    if old is not None and (value is old or value == old):
        return None
    if shape.associative or shape.listed:
        return _misshapen_list(value, shape)
    if not shape.fields:
        return None
    if not isinstance(value, dict):
        return ""
    before = old if isinstance(old, dict) else _NOTHING
    for name, child in shape.fields.items():
        below = value.get(name)
        if below is not None and (found := _misshapen(below, child, before.get(name))) is not None:
            return f".{name}{found}"
    return None


def _misshapen_list(value: Any, shape: MergeShape) -> str | None:
    if not isinstance(value, list):
        return ""
    for index, item in enumerate(value):
        if isinstance(item, dict) is (shape.merge == "set"):
            return f"[{index}]"
        if isinstance(item, dict):
            for key in shape.keys:
                if isinstance(item.get(key), _COMPOSITE):
                    return f"[{index}].{key}"
            if (found := _misshapen(item, shape.item)) is not None:
                return f"[{index}]{found}"
    return None


def items_by(
    *keys: str, merge_key: str = "", key_defaults: Mapping[str, str] | None = None, **fields: MergeShape
) -> MergeShape:
    """Return the shape of a list whose items are identified by ``keys``."""
    return MergeShape(
        merge="map", keys=keys, merge_key=merge_key, key_defaults=key_defaults or {}, items=MergeShape(fields=fields)
    )


def values() -> MergeShape:
    """Return the shape of a list that is a set of scalars."""
    return MergeShape(merge="set")


def fields(**children: MergeShape) -> MergeShape:
    """Return the shape of an object, naming the fields that differ from the rule."""
    return MergeShape(fields=children)

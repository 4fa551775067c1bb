"""Walking objects along a structural schema: pruning, defaulting, and the merge shape."""

from typing import Any

from spinney.api.struct import JSON
from spinney.server.kinds.shape import ATOMIC, GRANULAR, MergeShape

_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED = "x-kubernetes-embedded-resource"
_ENVELOPE = ("apiVersion", "kind", "metadata")
_COMPOSITE = (dict, list)  # a union would be made anew at each look


def prune(value: Any, schema: JSON, path: str = "", *, root: bool = False) -> list[str]:
    """Drop every field of ``value`` that the schema does not have; return the paths of those dropped."""
    dropped: list[str] = []
    if isinstance(value, list):
        items = schema.get("items")
        if isinstance(items, dict):
            for index, item in enumerate(value):
                if isinstance(item, _COMPOSITE):
                    dropped += prune(item, items, f"{path}[{index}]")
        return dropped
    if not isinstance(value, dict):
        return dropped
    properties: JSON = schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    embedded = root or schema.get(_EMBEDDED)
    for name in [*value]:
        if embedded and name in _ENVELOPE:
            continue
        below = properties.get(name, additional)
        if isinstance(below, dict):
            if isinstance(child := value[name], _COMPOSITE):
                dropped += prune(child, below, f"{path}.{name}" if path else name)
        elif below is not True and schema.get(_PRESERVE) is not True:
            del value[name]
            dropped.append(f"{path}.{name}" if path else name)
    return dropped


def fill_defaults(value: Any, schema: JSON) -> None:
    """Fill in the defaults that the schema declares, at every level that is there. Nulls that may not be null go."""
    if isinstance(value, list):
        items = schema.get("items")
        if isinstance(items, dict):
            for item in value:
                fill_defaults(item, items)
        return
    if not isinstance(value, dict):
        return
    properties: JSON = schema.get("properties") or {}
    for name, child in properties.items():
        present = value.get(name)
        if present is None and name in value and not child.get("nullable"):
            del value[name]
        if present is None and name not in value and "default" in child:
            present = value[name] = fresh(child["default"])
        if isinstance(present, _COMPOSITE):
            fill_defaults(present, child)
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        _fill_additional(value, properties, additional)


def _fill_additional(value: JSON, properties: JSON, additional: JSON) -> None:
    for name in [name for name in value if name not in properties]:
        if value[name] is None and not additional.get("nullable"):
            del value[name]
        else:
            fill_defaults(value[name], additional)


def fresh(value: Any) -> Any:
    """Return a copy of a JSON value that shares nothing with it."""
    if isinstance(value, dict):
        return {name: fresh(child) for name, child in value.items()}
    if isinstance(value, list):
        return [fresh(item) for item in value]
    return value


def shape_of(schema: JSON) -> MergeShape:
    """Return how objects of this schema merge."""
    if schema.get("x-kubernetes-map-type") == "atomic":
        return ATOMIC
    items = schema.get("items")
    if isinstance(items, dict):
        match schema.get("x-kubernetes-list-type"):
            case "map":
                keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
                properties = items.get("properties") or {}
                defaults = {key: properties[key]["default"] for key in keys if "default" in properties.get(key, {})}
                return MergeShape(merge="map", keys=keys, key_defaults=defaults, items=shape_of(items))
            case "set":
                return MergeShape(merge="set")
            case _:
                return ATOMIC
    children = {name: shape_of(child) for name, child in (schema.get("properties") or {}).items()}
    children = {name: child for name, child in children.items() if child != GRANULAR}
    additional = schema.get("additionalProperties")
    rest = shape_of(additional) if isinstance(additional, dict) else None
    if not children and (rest is None or rest == GRANULAR):
        return GRANULAR
    return MergeShape(fields=children, items=rest)

"""Walking objects along a structural schema: pruning, defaulting, and the merge shape."""

from typing import Any

from spinney.api.struct import JSON
from spinney.server.kinds.shape import ATOMIC, GRANULAR, MergeShape

_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED = "x-kubernetes-embedded-resource"
_ENVELOPE = ("apiVersion", "kind", "metadata")


def prune(value: Any, schema: JSON, path: str = "", *, root: bool = False) -> list[str]:
    """Drop every field of ``value`` that the schema does not have; return the paths of those dropped."""
    if isinstance(value, list):
        items = schema.get("items")
        if not isinstance(items, dict):
            return []
        return [each for index, item in enumerate(value) for each in prune(item, items, f"{path}[{index}]")]
    if not isinstance(value, dict):
        return []
    properties: JSON = schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    preserve = schema.get(_PRESERVE) is True
    kept = _ENVELOPE if root or schema.get(_EMBEDDED) else ()
    dropped: list[str] = []
    for name in [*value]:
        where = f"{path}.{name}" if path else name
        if name in kept and (name != "metadata" or root or schema.get(_EMBEDDED)):
            continue
        if name in properties:
            dropped += prune(value[name], properties[name], where)
        elif isinstance(additional, dict):
            dropped += prune(value[name], additional, where)
        elif not preserve and additional is not True:
            del value[name]
            dropped.append(where)
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
        if name in value and value[name] is None and not child.get("nullable"):
            del value[name]
        if name not in value and "default" in child:
            value[name] = fresh(child["default"])
        if name in value:
            fill_defaults(value[name], child)
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

"""Strategic merge patch: a merge patch that knows which lists are maps.

Lists with a merge key are merged item by item, sets by value; ``$patch`` (replace, delete, merge),
``$deleteFromPrimitiveList``, ``$setElementOrder`` and ``$retainKeys`` are the directives kubectl sends.
"""

from typing import Any

from spinney.api.struct import JSON
from spinney.server.exchange.status import bad_request
from spinney.server.kinds.shape import MergeShape

_DELETE_FROM = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"
_RETAIN = "$retainKeys"
_PATCH = "$patch"


def strategic_merge(target: JSON, patch: JSON, shape: MergeShape) -> JSON:
    """Return ``target`` changed by ``patch``; neither is changed."""
    if "$" in "".join([name[:1] for name in patch]):
        return _directed_merge(target, patch, shape)
    merged = {**target}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merge_value(merged.get(name), value, shape.child(name), None)
    return merged


def _directed_merge(target: JSON, patch: JSON, shape: MergeShape) -> JSON:
    """Do the same with a patch that has directives."""
    directive = patch.get(_PATCH)
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != _PATCH}
    if directive == "delete":
        return {}
    if directive not in {None, "merge"}:
        raise bad_request(f"unrecognized type: {directive}: expected replace, delete or merge at {_PATCH}")
    merged = {**target}
    retained = patch.get(_RETAIN)
    if isinstance(retained, list):
        merged = {name: value for name, value in merged.items() if name in retained}
    for name, value in patch.items():
        if name.startswith(_DELETE_FROM):
            field = name.removeprefix(_DELETE_FROM)
            merged[field] = [each for each in merged.get(field) or () if each not in value]
    for name, value in patch.items():
        if name in {_PATCH, _RETAIN} or name.startswith((_DELETE_FROM, _ORDER)):
            continue
        if value is None:
            merged.pop(name, None)
            continue
        merged[name] = _merge_value(merged.get(name), value, shape.child(name), patch.get(_ORDER + name))
    for name, order in patch.items():
        field = name.removeprefix(_ORDER)
        if name.startswith(_ORDER) and field not in patch and isinstance(merged.get(field), list):
            merged[field] = _ordered(merged[field], order, merged[field], shape.child(field))
    return merged


def _merge_value(present: Any, wanted: Any, shape: MergeShape, order: Any) -> Any:
    if isinstance(wanted, dict):
        # An atomic object still merges here: atomicity is a notion of apply, not of strategic merge.
        return strategic_merge(present if isinstance(present, dict) else {}, wanted, shape)
    if isinstance(wanted, list):
        present = present if isinstance(present, list) else []
        order = order if isinstance(order, list) else wanted
        if shape.merge == "set":
            return _ordered([*present, *(each for each in wanted if each not in present)], order, present, shape)
        if shape.merge == "map":
            return _ordered(_merge_items(present, wanted, shape), order, present, shape)
    return wanted


def _merge_items(present: list[Any], wanted: list[Any], shape: MergeShape) -> list[Any]:
    key = shape.strategic_key
    if any(isinstance(item, dict) and item.get(_PATCH) == "replace" and len(item) == 1 for item in wanted):
        return [item for item in wanted if not (isinstance(item, dict) and _PATCH in item)]
    items = [*present]
    for item in wanted:
        if not isinstance(item, dict) or key not in item:
            raise bad_request(f"map: {item} does not contain declared merge key: {key}")
        at = next((i for i, each in enumerate(items) if isinstance(each, dict) and each.get(key) == item[key]), None)
        directive = item.get(_PATCH)
        if directive == "delete":
            items = [each for each in items if not (isinstance(each, dict) and each.get(key) == item[key])]
        elif at is None:
            items.append(strategic_merge({}, item, shape.item))
        else:
            items[at] = strategic_merge(items[at], item, shape.item)
    return items


def _ordered(items: list[Any], order: list[Any], present: list[Any], shape: MergeShape) -> list[Any]:
    """Bring the items that ``order`` names into its order; others keep their place among those present before.

    A named item that is new goes before the others, as in Kubernetes.
    """
    key = shape.strategic_key

    def identity(item: Any) -> Any:
        return item.get(key) if shape.merge == "map" and isinstance(item, dict) else item

    wanted = [identity(item) for item in order]
    before = [identity(item) for item in present]
    named = sorted((item for item in items if identity(item) in wanted), key=lambda item: wanted.index(identity(item)))
    others = [item for item in items if identity(item) not in wanted]
    result: list[Any] = []
    for item in named:
        if identity(item) in before:
            place = before.index(identity(item))
            while others and before.index(identity(others[0])) < place:
                result.append(others.pop(0))
        result.append(item)
    return result + others

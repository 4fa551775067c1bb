"""Server-side apply: a manager says which fields it wants, and owns exactly those.

The applied configuration is merged into the live object. A field that it would change and that another manager owns is
a conflict, unless forced. A field that the manager owned, no longer applies and nobody else owns is removed.
"""

from datetime import datetime
from typing import Any

import msgspec

from spinney.api.field_error import FieldError
from spinney.api.struct import JSON, without_nulls
from spinney.server.exchange.status import StatusError
from spinney.server.kinds.kind import Kind
from spinney.server.kinds.shape import MergeShape
from spinney.server.patches.fieldset import Path, changes, fields_of, item_step, owned_part, shown
from spinney.server.patches.ownership import FieldOwner, first_owners, in_order, record_owners, writer

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def apply_to_nothing(kind: Kind, config: JSON, manager: str, now: datetime) -> list[JSON]:
    """Return the ``managedFields`` of an object that is created by applying ``config``."""
    entry = writer(kind, manager, "Apply", now, fields=_wanted(kind, config, "")).to_json()
    return [] if entry is None else [entry]


def apply(kind: Kind, live: JSON, config: JSON, manager: str, now: datetime, *, force: bool, subresource: str) -> JSON:
    """Return ``live`` with ``config`` applied and ownership updated; raise a 409 that names every conflict."""
    shape = kind.shape
    if not kind.custom:
        config = without_nulls(config)
    wanted = _wanted(kind, config, subresource)
    part = owned_part(config)
    if subresource:
        part = {name: value for name, value in part.items() if name in _reached(kind, subresource)}
    elif kind.status:
        part.pop("status", None)
    merged: JSON = merge_applied(live, part, shape)
    applier = writer(kind, manager, "Apply", now, fields=wanted, subresource=subresource)
    present = first_owners(kind, live, now)
    others = [owner for owner in present if not owner.same(applier)]
    before = next((owner for owner in present if owner.same(applier)), None)
    changed, _ = changes(owned_part(live), owned_part(merged), shape)
    changed |= _inner(changed)
    conflicts = [(owner, sorted(paths)) for owner in others if (paths := owner.owned(changed))]
    if conflicts and not force and (critical := _without_own(kind, live, manager, conflicts)):
        raise _conflict(critical)
    others = [owner.without(changed) for owner in others]
    if before is not None:
        # An object that was applied empty and now has fields is still applied: a part of it is.
        unset = before.fields - wanted
        left = frozenset(path for path in unset if not any(each[: len(path)] == path for each in wanted))
        abandoned = left.difference(*(owner.owned(left) for owner in others))
        abandoned -= _holding_others(abandoned, others)
        if abandoned:
            merged = remove_fields(merged, abandoned, shape)
            _, gone = changes(owned_part(live), owned_part(merged), shape)
            # A map that is gone because it became empty is still owned by the manager that applied it empty.
            removed = {path for path in gone if any(path[: len(each)] == each for each in abandoned)}
            others = [owner.without(removed) for owner in others]
        if before.fields == wanted:
            applier = before
    record_owners(merged, in_order(present, [*others, applier]))
    return merged


def _holding_others(abandoned: frozenset[Path], others: list[FieldOwner]) -> frozenset[Path]:
    """Return the abandoned maps and items that hold something another manager owns."""
    owned = [path for owner in others for path in owner.fields] if abandoned else []
    above = {path[:length] for path in owned for length in range(1, len(path))}
    return abandoned & above


def _inner(changed: set[Path]) -> set[Path]:
    """Return the maps inside what is new as a whole: a manager may have applied them empty."""
    found: set[Path] = set()
    for path in changed:
        new = False
        for length in range(1, len(path)):
            if new:
                found.add(path[:length])
            new = new or path[:length] in changed
    return found


def _without_own(
    kind: Kind, live: JSON, manager: str, conflicts: list[tuple[FieldOwner, list[Path]]]
) -> list[tuple[FieldOwner, list[Path]]]:
    """Return the conflicts without those of kubectl with itself.

    What ``kubectl apply`` set from the client's side, and nobody changed since, it may apply from the server's side.
    """
    text = (live["metadata"].get("annotations") or {}).get(_LAST_APPLIED)
    if manager != "kubectl" or not isinstance(text, str):
        return conflicts
    try:
        last = owned_part(without_nulls(msgspec.json.decode(text, type=JSON)))
    except (msgspec.DecodeError, AttributeError):  # another client wrote the annotation
        return conflicts
    changed, _ = changes(owned_part(live), owned_part(merge_applied(live, last, kind.shape)), kind.shape)
    own = fields_of(last, kind.shape) - changed
    rest = [(owner, [path for path in paths if path not in own]) for owner, paths in conflicts]
    return [(owner, paths) for owner, paths in rest if paths]


def _wanted(kind: Kind, config: JSON, subresource: str) -> frozenset[Path]:
    fields = fields_of(owned_part(config), kind.shape)
    if subresource:
        reached = {f"f:{name}" for name in _reached(kind, subresource)}
        return frozenset(path for path in fields if path[0] in reached)
    if kind.status:
        return frozenset(path for path in fields if path[0] != "f:status")
    return frozenset(fields)


def _reached(kind: Kind, subresource: str) -> tuple[str, ...]:
    """Return what an apply to a subresource reaches; of built-in kinds the metadata, too."""
    return (subresource,) if kind.custom else (subresource, "metadata")


def merge_applied(live: Any, config: Any, shape: MergeShape) -> Any:
    """Return ``live`` with ``config`` merged in by shape; unchanged parts are shared."""
    if isinstance(config, dict) and isinstance(live, dict) and shape.merge != "atomic":
        merged = {**live}
        for name, value in config.items():
            merged[name] = merge_applied(live[name], value, shape.child(name)) if name in live else value
        return merged
    if isinstance(config, list) and isinstance(live, list) and shape.associative:
        return _merge_items(live, config, shape)
    return config


def _merge_items(live: list[Any], config: list[Any], shape: MergeShape) -> list[Any]:
    """Merge items by key. Applied items keep the order of the configuration; others keep their place among them."""
    wanted = {item_step(item, shape): item for item in config}
    present = {item_step(item, shape): item for item in live}
    queue = [
        merge_applied(present[step], item, shape.item) if step in present else item for step, item in wanted.items()
    ]
    merged: list[Any] = []
    taken = 0
    for step, item in present.items():
        if step in wanted:
            merged.append(queue[taken])
            taken += 1
        else:
            merged.append(item)
    return merged + queue[taken:]


def remove_fields(value: Any, paths: frozenset[Path], shape: MergeShape) -> Any:
    """Return ``value`` without the given fields; what becomes empty by that goes too."""
    if not paths:
        return value
    here = {path[0] for path in paths if len(path) == 1}
    deeper: dict[str, set[Path]] = {}
    for path in paths:
        if len(path) > 1:
            deeper.setdefault(path[0], set()).add(path[1:])
    if isinstance(value, dict):
        kept: JSON = {}
        for name, child in value.items():
            step = f"f:{name}"
            if step in deeper:
                rest = remove_fields(child, frozenset(deeper[step]), shape.child(name))
                if rest not in ({}, []):
                    kept[name] = rest
            elif step not in here:
                kept[name] = child
        return kept
    if isinstance(value, list):
        items = []
        for item in value:
            step = item_step(item, shape)
            if step in here:
                continue
            items.append(remove_fields(item, frozenset(deeper[step]), shape.item) if step in deeper else item)
        return items
    return value


def _conflict(conflicts: list[tuple[FieldOwner, list[Path]]]) -> StatusError:
    causes = [
        FieldError("FieldManagerConflict", shown(path), f"conflict with {_named(owner)}")
        for owner, paths in conflicts
        for path in paths
    ]
    texts = [
        f"conflict with {_named(owner)}: {shown(paths[0])}"
        if len(paths) == 1
        else f"conflicts with {_named(owner)}:" + "".join(f"\n- {shown(path)}" for path in paths)
        for owner, paths in conflicts
    ]
    count = len(causes)
    message = f"Apply failed with {count} conflict{'s' if count > 1 else ''}: " + "\n".join(texts)
    return StatusError(409, "Conflict", message, details={"causes": [cause.cause() for cause in causes]})


def _named(owner: FieldOwner) -> str:
    subresource = f' with subresource "{owner.subresource}"' if owner.subresource else ""
    using = f" using {owner.api_version}" if owner.operation == "Update" else ""
    return f'"{owner.manager}"{subresource}{using}'

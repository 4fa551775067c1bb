"""Who owns which field (``metadata.managedFields``).

Ownership is kept from the first server-side apply of an object on (or from its creation, if the server is told to):
until then nobody can conflict, and objects stay half as large. What the object had before its first apply then belongs
to ``before-first-apply``, as in Kubernetes for objects older than their managed fields.
"""

from collections.abc import Iterable, Set
from datetime import datetime
from functools import cached_property
from typing import Any, Final, Literal

import msgspec

from spinney.api.struct import JSON
from spinney.api.time import shared_timestamp
from spinney.server.kinds.kind import Kind
from spinney.server.patches.fieldset import Path, changes, from_fields_v1, has_path, owned_part, to_fields_v1
from spinney.server.patches.fieldtree import is_tree, tree_of, with_paths, without_paths

Operation = Literal["Apply", "Update"]
_FIRST = "before-first-apply"
_ALWAYS_THERE = ("f:metadata", "f:spec", "f:status")  # so that nobody adds them; other maps are owned as such, too
_OPERATIONS: Final = ("Apply", "Update")
_RESET: Final[tuple[list[JSON], ...]] = ([], [{}])  # what a client sends to have no owners recorded
_FEW = 32  # so many paths are taken out of an entry, or put in, before reading it whole pays


class FieldOwner(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One entry of ``managedFields``. Its fields are only read from the entry when they are needed whole."""

    manager: str
    operation: Operation
    api_version: str
    subresource: str
    time: str
    paths: Set[Path] = frozenset()
    entry: JSON | None = None  # as it is stored; its fields count then

    @cached_property
    def fields(self) -> frozenset[Path]:
        """The fields that are owned."""
        return frozenset(self.paths if self.tree is None else from_fields_v1(self.tree))

    @property
    def tree(self) -> JSON | None:
        """The fields as they are stored, if they are."""
        return None if self.entry is None else self.entry.get("fieldsV1") or {}

    @property
    def identity(self) -> tuple[str, str, str]:
        """What makes two entries stand for the same writer."""
        return self.manager, self.operation, self.subresource

    def same(self, other: "FieldOwner") -> bool:
        """Tell whether two entries stand for the same writer."""
        return self.identity == other.identity

    def owned(self, paths: Set[Path]) -> Set[Path]:
        """Return which of ``paths`` are owned."""
        if (tree := self.tree) is not None:
            return {path for path in paths if has_path(tree, path)}
        return self.fields & paths

    def owning(self, fields: Set[Path]) -> "FieldOwner":
        """Return this writer with other fields."""
        return msgspec.structs.replace(self, paths=fields, entry=None)

    def without(self, paths: Set[Path]) -> "FieldOwner":
        """Return this owner without the given fields."""
        if not (owned := self.owned(paths)):
            return self
        if self.tree is not None and len(owned) <= _FEW:
            return self.owning_tree(without_paths(self.tree, owned))
        return self.owning(self.fields - paths)

    def after(self, earlier: "FieldOwner", removed: Set[Path]) -> "FieldOwner":
        """Return this writer with what it owned earlier, except for what it has removed now."""
        if earlier.tree is not None and len(self.fields) + len(removed) <= _FEW:
            return self.owning_tree(with_paths(without_paths(earlier.tree, removed), self.fields))
        return self.owning(self.fields | (earlier.fields - removed))

    def owning_tree(self, tree: JSON) -> "FieldOwner":
        """Return this writer with other fields, given as they are stored."""
        if not tree:
            return self.owning(frozenset())
        return msgspec.structs.replace(self, entry=self.entry_of(tree))

    def to_json(self) -> JSON | None:
        """Return the entry as it is stored; ``None`` if nothing is owned."""
        if self.entry is not None:
            return self.entry if self.entry.get("fieldsV1") else None
        return self.entry_of(to_fields_v1(self.fields)) if self.fields else None

    def entry_of(self, tree: JSON) -> JSON:
        """Return an entry for this writer with the fields of a tree."""
        entry: JSON = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "time": self.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": tree,
        }
        if self.subresource:
            entry["subresource"] = self.subresource
        return entry


def owners_of(obj: JSON) -> list[FieldOwner]:
    """Return the owners that an object records."""
    return [
        FieldOwner(
            manager=entry.get("manager", ""),
            operation=entry.get("operation", "Update"),
            api_version=entry.get("apiVersion", ""),
            subresource=entry.get("subresource", ""),
            time=entry.get("time", ""),
            entry=entry,
        )
        for entry in obj["metadata"].get("managedFields") or ()
        if isinstance(entry, dict)
    ]


def first_owners(kind: Kind, live: JSON, now: datetime) -> list[FieldOwner]:
    """Return the owners of an object, with one for what it had before owners were recorded."""
    recorded = owners_of(live)
    if recorded:
        return recorded
    first = writer(kind, _FIRST, "Update", now, fields=frozenset())
    return [first.owning_tree(tree_of(owned_part(live), kind.shape))]


def writer(
    kind: Kind, manager: str, operation: Operation, now: datetime, *, fields: Set[Path], subresource: str = ""
) -> FieldOwner:
    """Return a manager that writes now."""
    return FieldOwner(
        manager=manager,
        operation=operation,
        api_version=kind.resource.api_version,
        subresource=subresource,
        time=shared_timestamp(now.replace(microsecond=0)),
        paths=fields,
    )


def record_owners(obj: JSON, owners: Iterable[FieldOwner]) -> None:
    """Write the owners into an object; managers that own nothing are left out."""
    entries = [entry for owner in owners if (entry := owner.to_json()) is not None]
    if entries:
        obj["metadata"]["managedFields"] = entries
    else:
        obj["metadata"].pop("managedFields", None)


def own_created(kind: Kind, obj: JSON, manager: str, now: datetime, *, always: bool) -> None:
    """Record the fields of a new object as its creator's, if ownership is kept from the start."""
    obj["metadata"].pop("managedFields", None)
    if always and (tree := tree_of(owned_part(obj), kind.shape)):
        for name, child in [*tree.items(), *tree.get("f:metadata", {}).items()]:
            if child and name not in _ALWAYS_THERE:
                child["."] = {}
        creator = writer(kind, manager, "Update", now, fields=frozenset())
        obj["metadata"]["managedFields"] = [creator.entry_of(tree)]


def own_updated(
    kind: Kind, obj: JSON, old: JSON, *, given: list[Any] | None, manager: str, now: datetime, subresource: str
) -> None:
    """Record the fields that an update changed as the updater's, if ownership of the object is kept.

    ``given`` are the entries that the client sent. On the main endpoint they take the place of those recorded if they
    are valid; an empty list, or a single empty entry, ends the keeping.
    """
    metadata = obj["metadata"]
    metadata.pop("managedFields", None)
    kept: list[JSON] | None = old["metadata"].get("managedFields")
    if given is not None and given != kept and not subresource:
        if given in _RESET:
            return
        if all(_is_valid(entry) for entry in given):
            kept = list({_identity(entry): entry for entry in given}.values())
    if kept is None:
        return
    metadata["managedFields"] = kept
    changed, removed = changes(owned_part(old), owned_part(obj), kind.shape)
    before = owners_of(obj)
    if not changed and not removed:
        record_owners(obj, before)
        return
    updater = writer(kind, manager, "Update", now, fields=changed, subresource=subresource)
    owners = []
    for owner in before:
        if owner.same(updater):
            updater = updater.after(owner, removed)
        else:
            owners.append(owner.without(changed | removed))
    record_owners(obj, in_order(before, [*owners, updater]))


def _is_valid(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and entry.get("operation") in _OPERATIONS
        and bool(entry.get("apiVersion"))
        and entry.get("fieldsType") == "FieldsV1"
        and is_tree(entry.get("fieldsV1") or {})
    )


def _identity(entry: JSON) -> tuple[object, ...]:
    """Return what entries of one object differ in; a manager that applies is the same in every version."""
    version = "" if entry["operation"] == "Apply" else entry["apiVersion"]
    return entry.get("manager", ""), entry["operation"], version, entry.get("subresource", "")


def in_order(before: list[FieldOwner], owners: list[FieldOwner]) -> list[FieldOwner]:
    """Return ``owners`` in the places they had before, new ones last: writing the same twice changes nothing."""
    places = [owner.identity for owner in before]
    return sorted(owners, key=lambda owner: places.index(owner.identity) if owner.identity in places else len(places))

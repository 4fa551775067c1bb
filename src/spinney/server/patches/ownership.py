"""Who owns which field (``metadata.managedFields``).

Ownership is kept from the first server-side apply of an object on (or from its creation, if the server is told to):
until then nobody can conflict, and objects stay half as large. What the object had before its first apply then belongs
to ``before-first-apply``, as in Kubernetes for objects older than their managed fields.
"""

from collections.abc import Iterable, Set
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

from spinney.api.struct import JSON
from spinney.api.time import timestamp
from spinney.server.kinds.kind import Kind
from spinney.server.patches.fieldset import Path, changes, fields_of, from_fields_v1, owned_part, to_fields_v1

Operation = Literal["Apply", "Update"]
_FIRST = "before-first-apply"


@dataclass(frozen=True, slots=True)
class Owner:
    """One entry of ``managedFields``."""

    manager: str
    operation: Operation
    api_version: str
    subresource: str
    time: str
    fields: frozenset[Path]
    entry: JSON | None = field(default=None, compare=False)  # as it was read, while nothing has changed

    @property
    def identity(self) -> tuple[str, str, str]:
        """What makes two entries stand for the same writer."""
        return self.manager, self.operation, self.subresource

    def same(self, other: "Owner") -> bool:
        """Return whether two entries stand for the same writer."""
        return self.identity == other.identity

    def without(self, paths: Set[Path]) -> "Owner":
        """Return this owner without the given fields."""
        return self if self.fields.isdisjoint(paths) else replace(self, fields=self.fields - paths, entry=None)

    def to_json(self) -> JSON:
        """Return the entry as it is stored."""
        if self.entry is not None:
            return self.entry
        entry: JSON = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "time": self.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": to_fields_v1(set(self.fields)),
        }
        if self.subresource:
            entry["subresource"] = self.subresource
        return entry


def owners_of(obj: JSON) -> list[Owner]:
    """Return the owners that an object records."""
    return [
        Owner(
            manager=entry.get("manager", ""),
            operation=entry.get("operation", "Update"),
            api_version=entry.get("apiVersion", ""),
            subresource=entry.get("subresource", ""),
            time=entry.get("time", ""),
            fields=frozenset(from_fields_v1(entry.get("fieldsV1") or {})),
            entry=entry,
        )
        for entry in obj["metadata"].get("managedFields") or ()
        if isinstance(entry, dict)
    ]


def first_owners(kind: Kind, live: JSON, now: datetime) -> list[Owner]:
    """Return the owners of an object, inventing one for what it had before anybody was recorded."""
    recorded = owners_of(live)
    if recorded:
        return recorded
    fields = frozenset(fields_of(owned_part(live), kind.shape))
    return [Owner(_FIRST, "Update", kind.resource.api_version, "", timestamp(now), fields)]


def record_owners(obj: JSON, owners: Iterable[Owner]) -> None:
    """Write the owners into an object; those who own nothing are left out."""
    entries = [owner.to_json() for owner in owners if owner.fields]
    if entries:
        obj["metadata"]["managedFields"] = entries
    else:
        obj["metadata"].pop("managedFields", None)


def own_created(kind: Kind, obj: JSON, manager: str, now: datetime, *, always: bool) -> None:
    """Record the fields of a new object as its creator's, if ownership is kept from the start."""
    obj["metadata"].pop("managedFields", None)
    if always:
        fields = frozenset(fields_of(owned_part(obj), kind.shape))
        record_owners(obj, [Owner(manager, "Update", kind.resource.api_version, "", timestamp(now), fields)])


def own_updated(
    kind: Kind, obj: JSON, old: JSON, manager: str, now: datetime, *, subresource: str, always: bool
) -> None:
    """Record the fields that an update changed as the updater's, if ownership of the object is kept."""
    metadata = obj["metadata"]
    given = metadata.pop("managedFields", None)
    kept = old["metadata"].get("managedFields")
    if given == [{}] or not (kept or always):
        return
    if kept:
        metadata["managedFields"] = kept
    changed, removed = changes(owned_part(old), owned_part(obj), kind.shape)
    if not changed and not removed:
        return
    updater = Owner(manager, "Update", kind.resource.api_version, subresource, timestamp(now), frozenset(changed))
    owners = []
    for owner in owners_of(old):
        if owner.same(updater):
            updater = replace(updater, fields=updater.fields | (owner.fields - removed))
        else:
            owners.append(owner.without(changed | removed))
    record_owners(obj, in_order(owners_of(old), [*owners, updater]))


def in_order(before: list[Owner], owners: list[Owner]) -> list[Owner]:
    """Return ``owners`` in the places they had before, new ones last: writing the same twice changes nothing."""
    places = [owner.identity for owner in before]
    return sorted(owners, key=lambda owner: places.index(owner.identity) if owner.identity in places else len(places))

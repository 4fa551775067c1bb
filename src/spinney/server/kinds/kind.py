"""A kind as the server serves it, and the behaviour that makes its objects differ from others."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from spinney.api.apiextensions import PrinterColumn
from spinney.api.field_error import FieldError
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.server.kinds.shape import MergeShape
from spinney.server.kinds.shapes import PLAIN

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class FieldLabel:
    """A field that a field selector may name, and where its value stands in the stored object."""

    name: str
    path: tuple[str, ...]
    absent: str = ""

    def value(self, obj: JSON) -> str:
        """Return the field's value as selectors compare it."""
        at: object = obj
        for step in self.path:
            if not isinstance(at, dict):
                return self.absent
            at = at.get(step)
        if at is None:
            return self.absent
        if isinstance(at, bool):
            return "true" if at else "false"
        return str(at)


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Where a kind keeps what its ``scale`` subresource shows."""

    spec_replicas: tuple[str, ...]
    status_replicas: tuple[str, ...]
    selector: tuple[str, ...] = ()


class Behaviour:
    """What is special about the objects of a kind. This base is what most kinds do: nothing special.

    The methods change ``obj`` in place where they say "fill" or "prepare", and never change ``old``.
    """

    def fill_defaults(self, obj: JSON) -> None:
        """Fill in what the user left out."""

    def prepare_create(self, obj: JSON, now: datetime) -> None:
        """Bring a new object into the state in which its life begins."""

    def prepare_update(self, obj: JSON, old: JSON, subresource: str) -> None:
        """Undo what a client may not change through this endpoint."""

    def validate(self, obj: JSON, old: JSON | None, subresource: str) -> Iterable[FieldError]:
        """Return what is wrong with ``obj`` as it would be stored; ``old`` is what it replaces."""
        return []

    def warnings(self, obj: JSON) -> list[str]:
        """Return what the user should be told although the write is accepted."""
        return []

    def unknown_fields(self, obj: JSON) -> list[str]:
        """Return the paths of fields that are not part of the kind, and drop them from ``obj``."""
        return []


BASE_BEHAVIOUR = Behaviour()


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind in one served version."""

    resource: Resource
    storage: str  # name of the collection; versions of one kind share it
    storage_version: str  # apiVersion of stored objects
    singular: str
    list_kind: str
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    status: bool = False  # has the status subresource
    status_at_create: bool = False  # keeps a status that comes with the create, as nodes do
    scale: ScalePaths | None = None
    subresources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # others: name -> verbs
    labels: tuple[FieldLabel, ...] = ()
    label_aliases: Mapping[str, str] = field(default_factory=dict)
    hidden_labels: frozenset[str] = frozenset()  # which this version, or this kind, does not know
    generation: bool = True
    unconditional_update: bool = True
    create_on_update: bool = False
    returns_deleted: bool = False
    deprecation: str = ""  # the warning that a client of a built-in kind gets
    custom: bool = False
    shape: MergeShape = PLAIN
    behaviour: Behaviour = BASE_BEHAVIOUR
    to_storage: Callable[[JSON], JSON] | None = None
    from_storage: Callable[[JSON], JSON] | None = None
    schema: JSON | None = None  # of a custom kind
    columns: tuple[PrinterColumn, ...] = ()  # of a custom kind

    @property
    def stored_as_is(self) -> bool:
        """Whether the stored form is the served form."""
        return self.from_storage is None and self.storage_version == self.resource.api_version

    @cached_property
    def label_index(self) -> Mapping[str, int]:
        """Position of each selectable field in :attr:`Record.fields`."""
        index = {label.name: position for position, label in enumerate(self.labels)}
        known = {name: position for name, position in index.items() if name not in self.hidden_labels}
        return known | {alias: index[name] for alias, name in self.label_aliases.items()}

    def field_values(self, obj: JSON) -> tuple[str, ...]:
        """Return the values of the selectable fields of a stored object."""
        return tuple([label.value(obj) for label in self.labels])

    def served(self, obj: JSON) -> JSON:
        """Return a stored object in this version (the object is taken over)."""
        if self.from_storage is not None:
            return self.from_storage(obj)
        obj["apiVersion"] = self.resource.api_version
        return obj

    def stored(self, obj: JSON) -> JSON:
        """Return an object of this version as it is stored (the object is taken over)."""
        if self.to_storage is not None:
            return self.to_storage(obj)
        obj["apiVersion"] = self.storage_version
        return obj

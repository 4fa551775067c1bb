"""The table of fields: which fields each built-in type has, by JSON name and by protobuf number.

``kubernetes.json`` is generated from the published API types (``hack/fields``) and covers every release the server
can play; a :class:`FieldTable` is that table for one release. Types are read when first asked for.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from typing import Any, Literal

import msgspec

Form = Literal["scalar", "message", "list", "map", "items"]


@dataclass(frozen=True, slots=True)
class FieldType:
    """The type of a field: a scalar or message by name, or a list or map ``of`` something.

    ``items`` is a list that protobuf wraps into a message of its own. Keys of maps are always strings.
    """

    form: Form
    name: str = ""
    of: "FieldType | None" = None

    @property
    def element(self) -> "FieldType":
        """The type of the elements of a list or map."""
        assert self.of is not None, f"{self.form} {self.name} has no elements"
        return self.of


@dataclass(frozen=True, slots=True)
class Field:
    """One field. An ``inline`` one is a message in protobuf whose fields stand beside the others in JSON."""

    number: int
    name: str
    type: FieldType
    omit_empty: bool  # JSON leaves it out when it is empty, and so cannot tell that from absent
    patch_strategy: str
    patch_merge_key: str

    @property
    def inline(self) -> bool:
        """Whether the field's own fields stand in its place."""
        return not self.name


class Message:
    """A type with fields, as one release of Kubernetes has it."""

    def __init__(self, name: str, fields: tuple[Field, ...], table: "FieldTable") -> None:
        self.name = name
        self.fields = fields
        self._table = table

    @cached_property
    def by_number(self) -> Mapping[int, Field]:
        """Fields as protobuf knows them."""
        return {field.number: field for field in self.fields}

    @cached_property
    def by_name(self) -> Mapping[str, Field]:
        """Fields as JSON knows them, those of inline messages included."""
        found: dict[str, Field] = {}
        for field in self.fields:
            if field.inline:
                found |= self._table.message(field.type.name).by_name
            else:
                found[field.name] = field
        return found


class FieldTable:
    """The types of one release; ``kubernetes_version`` is its minor, such as ``1.37``."""

    def __init__(self, kubernetes_version: str) -> None:
        self._version = kubernetes_version
        self._kinds, self._types = _contents()
        self._messages: dict[str, Message] = {}

    def kind(self, api_version: str, kind: str) -> Message | None:
        """Return the type of a kind's objects, if it is built in. Options have the same type in every version."""
        if kind == "DeleteOptions":
            api_version = "meta.k8s.io/v1"
        name = self._kinds.get(f"{api_version} {kind}")
        return None if name is None else self.message(name)

    def message(self, name: str) -> Message:
        """Return the type called ``name``."""
        found = self._messages.get(name)
        if found is None:
            fields = tuple(_field(*row) for row in self._types[name] if self._has(row))
            found = self._messages[name] = Message(name, fields, self)
        return found

    def _has(self, row: list[Any]) -> bool:
        return len(row) <= _RELEASES or self._version in row[_RELEASES].split()


_RELEASES = 5


@lru_cache(maxsize=8)
def field_table(kubernetes_version: str) -> FieldTable:
    """Return the table of a release; the same one each time."""
    return FieldTable(kubernetes_version)


@lru_cache(maxsize=1)
def _contents() -> tuple[Mapping[str, str], Mapping[str, list[list[Any]]]]:
    content = msgspec.json.decode((files(__package__) / "kubernetes.json").read_bytes())
    return content["kinds"], content["types"]


def _field(number: int, name: str, described: str, flags: str = "", patch: str = "", _releases: str = "") -> Field:
    strategy, _, key = patch.partition(":")
    return Field(number, name, _field_type(described), "o" in flags, strategy, key)


@cache
def _field_type(described: str) -> FieldType:
    for prefix, form in _FORMS.items():
        if described.startswith(prefix):
            return FieldType(form, of=_field_type(described.removeprefix(prefix)))
    return FieldType("message" if "." in described else "scalar", described)


_FORMS: Mapping[str, Form] = {"[]": "list", "{}": "map", "items:": "items"}

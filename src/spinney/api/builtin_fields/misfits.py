"""What of a value does not go with the fields of a built-in type, found without changing it.

Where the server drops what a type does not have and stops at the first wrong value
(:mod:`spinney.api.builtin_fields.checking`), a rule wants all of it, each with its path. A null fits everywhere, as it
does in Kubernetes: it is the same as nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from spinney.api.builtin_fields.checking import what_does_not_fit
from spinney.api.builtin_fields.table import FieldTable, FieldType
from spinney.api.field_error import FieldPath


@dataclass(frozen=True, slots=True)
class WrongValue:
    """A value that its field cannot hold."""

    path: FieldPath
    value: Any
    expected: str


@dataclass(frozen=True, slots=True)
class UnknownField:
    """A field that its type does not have; ``known`` are those it has."""

    path: FieldPath
    name: str
    known: tuple[str, ...]


def misfits(table: FieldTable, kind: FieldType, value: Any, path: FieldPath) -> Iterator[WrongValue | UnknownField]:
    """Yield every wrong value and every unknown field in ``value``, in its order."""
    if value is None:
        return
    expected = what_does_not_fit(kind, value)
    if expected is not None:
        yield WrongValue(path, value, expected)
    elif kind.form == "message":
        fields = table.message(kind.name).by_name
        for name, part in value.items():
            if name in fields:
                yield from misfits(table, fields[name].type, part, path.child(name))
            else:
                yield UnknownField(path.child(str(name)), str(name), tuple(fields))
    elif kind.form == "map":
        for key, part in value.items():
            yield from misfits(table, kind.element, part, path.key(str(key)))
    elif kind.form != "scalar":
        for index, part in enumerate(value):
            yield from misfits(table, kind.element, part, path.index(index))


def fitting(table: FieldTable, kind: FieldType, value: Any) -> Any:
    """Return a copy of ``value`` without its misfits and nulls; items of a list keep their positions."""
    if value is None or what_does_not_fit(kind, value) is not None:
        return None
    if kind.form == "message":
        fields = table.message(kind.name).by_name
        parts = {name: fitting(table, fields[name].type, part) for name, part in value.items() if name in fields}
        return {name: part for name, part in parts.items() if part is not None}
    if kind.form == "map":
        parts = {key: fitting(table, kind.element, part) for key, part in value.items()}
        return {key: part for key, part in parts.items() if part is not None}
    return value if kind.form == "scalar" else [fitting(table, kind.element, part) for part in value]

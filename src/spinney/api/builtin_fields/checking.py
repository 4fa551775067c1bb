"""Holding objects of built-in kinds to their fields: unknown ones are dropped and reported, wrong types refused.

Kubernetes decodes into typed structures, which has effects that clients see: a field nobody declared is gone, a null
or an empty collection is the same as nothing, and a value of the wrong type is a 400 before anything else looks at the
object. Quantities are rewritten in their canonical form (``1000m`` is ``1``).
"""

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from spinney.api.builtin_fields.table import FieldTable, FieldType, Message
from spinney.api.quantity import InvalidQuantity, Quantity
from spinney.api.struct import JSON

_OBJECTS: Final = ("message", "map")
_EMPTY: Final[Mapping[str, object]] = {"list": [], "map": {}}  # by form; Go does not write them where a field says so
_QUANTITY: Final = "quantity"
_STRING: Final = "string"
_TEXT_ONLY: Final = frozenset((str,))
_NOTHING_BEFORE: Final[Mapping[str, Any]] = {}


_NOTHING: Final = {"string": "", "quantity": "0"}
"""What Kubernetes reads a null in a map or a list as; other nulls stay."""


class WrongType(ValueError):
    """A value that a field cannot hold."""

    def __init__(self, path: str, value: object, expected: str) -> None:
        super().__init__(f"{path}: Invalid value: {_called(value)}: must be {expected}")


def conform(table: FieldTable, obj: JSON, old: JSON | None = None) -> list[str]:
    """Drop the fields that the kind does not have and return their paths; raise :class:`WrongType`.

    Parts that are the same in ``old``, which was held to its fields before, are not looked at again: neither the
    spec of an object whose status changes, nor the containers of a pod whose gates do. An object whose kind is not in
    the table stays as it is.
    """
    message = table.kind(obj["apiVersion"], obj["kind"])
    if message is None:
        return []
    unknown: list[str] = []
    fields = message.by_name
    for name in [*obj]:
        if name in {"apiVersion", "kind"} or (old is not None and name in old and _is_same(obj[name], old[name])):
            continue
        field = fields.get(name)
        if field is None:
            del obj[name]
            unknown.append(name)
        elif field.omit_empty and obj[name] is not None and obj[name] == _EMPTY.get(field.type.form):
            del obj[name]
        elif field.type.name == _QUANTITY:
            obj[name] = _canonical(obj[name], name, listed=False)
        elif obj[name] is not None:
            _check(table, field.type, obj[name], name, unknown, old=None if old is None else old.get(name))
    return unknown


def conform_metadata(table: FieldTable, obj: JSON, old: JSON | None = None) -> list[str]:
    """Do the same for the metadata of an object of any kind."""
    metadata = obj["metadata"]
    unknown: list[str] = []
    if old is None or not _is_same(metadata, old["metadata"]):
        _check_message(table, table.message("meta.v1.ObjectMeta"), metadata, "metadata", unknown)
    return unknown


def _is_same(value: object, old: object) -> bool:
    """Tell whether two JSON values are the same, types included: to Python ``1`` equals ``true``."""
    if value is old:
        return True
    if value != old:
        return False
    if isinstance(value, dict) and isinstance(old, dict):
        return all(each is old[name] or _is_encoded_alike(each, old[name]) for name, each in value.items())
    return _is_encoded_alike(value, old)


def _is_encoded_alike(value: object, old: object) -> bool:
    return msgspec.json.encode(value) == msgspec.json.encode(old)


def what_does_not_fit(kind: FieldType, value: Any) -> str | None:
    """Return what a field of a type expects, where ``value`` itself, not what is inside, is something else."""
    if kind.name == _QUANTITY:
        return None if _is_quantity(value) else _A_QUANTITY
    if kind.form == "scalar":
        fits, expected = _SCALARS[kind.name]
        return None if fits(value) else expected
    if kind.form in _OBJECTS:
        return None if isinstance(value, dict) else "an object"
    return None if isinstance(value, list) else "a list"


def _check(table: FieldTable, kind: FieldType, value: Any, path: str, unknown: list[str], *, old: Any = None) -> None:
    expected = what_does_not_fit(kind, value)
    if expected is not None:
        raise WrongType(path, value, expected)
    if kind.form == "message":
        before = old if isinstance(old, dict) else _NOTHING_BEFORE
        _check_message(table, table.message(kind.name), value, path, unknown, old=before)
    elif kind.form != "scalar":
        _check_items(table, kind.element, value, path, unknown)


def _check_items(table: FieldTable, kind: FieldType, value: Any, path: str, unknown: list[str]) -> None:
    """Check what is in a map or a list."""
    is_map = isinstance(value, dict)
    if kind.name == _STRING and _TEXT_ONLY.issuperset(map(type, value.values() if is_map else value)):
        return
    for key, item in value.items() if is_map else enumerate(value):
        where = f"{path}.{key}" if is_map else f"{path}[{key}]"
        if item is None:
            value[key] = _NOTHING.get(kind.name)
        elif kind.name == _QUANTITY:
            value[key] = _canonical(item, where, listed=is_map)
        else:
            _check(table, kind, item, where, unknown)


def _check_message(
    table: FieldTable,
    message: Message,
    obj: JSON,
    path: str,
    unknown: list[str],
    *,
    old: Mapping[str, Any] = _NOTHING_BEFORE,
) -> None:
    fields = message.by_name
    absent = []
    for name, value in obj.items():
        field = fields.get(name)
        if field is None:
            unknown.append(f"{path}.{name}")
            absent.append(name)
        elif value is None or (not value and field.omit_empty and value == _EMPTY.get(field.type.form)):
            absent.append(name)
        elif (type(value) is str and field.type.name == _STRING) or (name in old and _is_same(value, old[name])):
            continue
        elif field.type.name == _QUANTITY:
            obj[name] = _canonical(value, f"{path}.{name}", listed=False)
        else:
            _check(table, field.type, value, f"{path}.{name}", unknown)
    for name in absent:
        del obj[name]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_DATE: Final = r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d"
_ZONE: Final = r"([Zz]|[+-]\d\d:\d\d)"
_TIME: Final = re.compile(rf"{_DATE}(\.\d+)?{_ZONE}")
_MICRO_TIME: Final = re.compile(rf"{_DATE}\.\d{{6}}{_ZONE}")
_MILLI: Final = 10**6  # in the units of quantities
_A_QUANTITY: Final = "a quantity such as 1500m or 2Gi"


def _written_as(pattern: re.Pattern[str]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def _is_quantity(value: object) -> bool:
    if not isinstance(value, str) and not _is_number(value):
        return False
    try:
        _canonical_text(value.strip() if isinstance(value, str) else repr(value), listed=False)
    except InvalidQuantity:
        return False
    return True


def _canonical(value: Any, path: str, *, listed: bool) -> str:
    """Return a quantity as Kubernetes writes it; those of resource lists are whole thousandths."""
    if not _is_quantity(value):
        raise WrongType(path, value, _A_QUANTITY)
    return _canonical_text(value.strip() if isinstance(value, str) else repr(value), listed)


@lru_cache(maxsize=4096)
def _canonical_text(text: str, listed: bool) -> str:
    quantity = Quantity.parse(text)
    if listed and quantity.nano % _MILLI:
        quantity = Quantity(quantity.milli * _MILLI, quantity.format)
    return str(quantity)


def _is_base64(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        base64.b64decode(value.translate(_LINE_BREAKS), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


_Scalar = tuple[Callable[[object], bool], str]


def _whole(lowest: int, highest: int) -> _Scalar:
    def fits(value: object) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and lowest <= value <= highest

    return fits, f"a whole number from {lowest} to {highest}"


_BOUNDS: Final = {
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint8": (0, 2**8 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
}
_LINE_BREAKS: Final = str.maketrans("", "", "\r\n")  # Go skips them
_TEXT: _Scalar = (lambda value: isinstance(value, str), "a string")
_NUMBER: _Scalar = (_is_number, "a number")
_ANY: _Scalar = (lambda _: True, "anything")
_SCALARS: Mapping[str, _Scalar] = {
    "string": _TEXT,
    "bytes": (_is_base64, "base64"),
    "time": (_written_as(_TIME), "a time such as 2026-01-02T03:04:05Z"),
    "microTime": (_written_as(_MICRO_TIME), "a time in microseconds, such as 2026-01-02T03:04:05.000006Z"),
    "duration": _TEXT,
    "intOrString": (
        lambda value: isinstance(value, int | str) and not isinstance(value, bool),
        "a whole number or a string",
    ),
    "bool": (lambda value: isinstance(value, bool), "true or false"),
    **{name: _whole(*bounds) for name, bounds in _BOUNDS.items()},
    **dict.fromkeys(("float32", "float64"), _NUMBER),
    **dict.fromkeys(("raw", "schemaOrArray", "schemaOrBool", "schemaOrStrings"), _ANY),
}


def _called(value: object) -> str:
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    return "a string" if isinstance(value, str) else "a number"

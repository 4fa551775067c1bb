"""Holding objects of built-in kinds to their fields: unknown ones are dropped and reported, wrong types refused.

Kubernetes decodes into typed structures, which has effects that clients see: a field nobody declared is gone, a null
or an empty collection is the same as nothing, and a value of the wrong type is a 400 before anything else looks at the
object.
"""

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from spinney.api.struct import JSON
from spinney.server.fields.table import FieldTable, FieldType, Message

_EMPTY: Final[Mapping[str, object]] = {"list": [], "map": {}}  # by form; Go does not write them where a field says so


class WrongType(ValueError):  # noqa: N818 - named for the fault
    """A value that a field cannot hold."""

    def __init__(self, path: str, value: object, expected: str) -> None:
        super().__init__(f"{path}: Invalid value: {_called(value)}: must be {expected}")


def conform(table: FieldTable, obj: JSON, old: JSON | None = None) -> list[str]:
    """Drop the fields that the kind does not have and return their paths; raise :class:`WrongType`.

    Parts that are the same in ``old``, which was held to its fields before, are not looked at again. An object whose
    kind is not in the table stays as it is.
    """
    message = table.kind(obj["apiVersion"], obj["kind"])
    if message is None:
        return []
    unknown: list[str] = []
    fields = message.by_name
    for name in [*obj]:
        if name in {"apiVersion", "kind"} or (old is not None and name in old and obj[name] == old[name]):
            continue
        field = fields.get(name)
        if field is None:
            del obj[name]
            unknown.append(name)
        elif field.omit_empty and obj[name] is not None and obj[name] == _EMPTY.get(field.type.form):
            del obj[name]
        elif obj[name] is not None:
            _check(table, field.type, obj[name], name, unknown)
    return unknown


def _check(table: FieldTable, kind: FieldType, value: Any, path: str, unknown: list[str]) -> None:
    if kind.form == "scalar":
        fits, expected = _SCALARS[kind.name]
        if not fits(value):
            raise WrongType(path, value, expected)
    elif kind.form == "message":
        if not isinstance(value, dict):
            raise WrongType(path, value, "an object")
        _check_message(table, table.message(kind.name), value, path, unknown)
    elif kind.form == "map":
        if not isinstance(value, dict):
            raise WrongType(path, value, "an object")
        for key, item in value.items():
            if item is not None:
                _check(table, kind.element, item, f"{path}.{key}", unknown)
    else:
        if not isinstance(value, list):
            raise WrongType(path, value, "a list")
        for index, item in enumerate(value):
            if item is not None:
                _check(table, kind.element, item, f"{path}[{index}]", unknown)


def _check_message(table: FieldTable, message: Message, obj: JSON, path: str, unknown: list[str]) -> None:
    fields = message.by_name
    absent = []
    for name, value in obj.items():
        field = fields.get(name)
        if field is None:
            unknown.append(f"{path}.{name}")
            absent.append(name)
        elif value is None or (field.omit_empty and value == _EMPTY.get(field.type.form)):
            absent.append(name)
        else:
            _check(table, field.type, value, f"{path}.{name}", unknown)
    for name in absent:
        del obj[name]


def _is_string(value: object) -> bool:
    return isinstance(value, str)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_anything(value: object) -> bool:
    return True


_DATE: Final = r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d"
_ZONE: Final = r"([Zz]|[+-]\d\d:\d\d)"
_TIME: Final = re.compile(rf"{_DATE}(\.\d+)?{_ZONE}")
_MICRO_TIME: Final = re.compile(rf"{_DATE}\.\d{{6}}{_ZONE}")
_QUANTITY: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+|[numkMGTPE]|[KMGTPE]i)?")


def _is_time(value: object) -> bool:
    return isinstance(value, str) and _TIME.fullmatch(value) is not None


def _is_micro_time(value: object) -> bool:
    return isinstance(value, str) and _MICRO_TIME.fullmatch(value) is not None


def _is_quantity(value: object) -> bool:
    return _is_number(value) if not isinstance(value, str) else _reads_as_quantity(value)


@lru_cache(maxsize=4096)
def _reads_as_quantity(value: str) -> bool:
    return _QUANTITY.fullmatch(value.strip()) is not None


def _is_base64(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        base64.b64decode(value.translate(_LINE_BREAKS), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


_LINE_BREAKS: Final = str.maketrans("", "", "\r\n")  # Go skips them
_Scalar = tuple[Callable[[object], bool], str]
_TEXT: _Scalar = (_is_string, "a string")
_WHOLE: _Scalar = (_is_integer, "a whole number")
_NUMBER: _Scalar = (_is_number, "a number")
_ANY: _Scalar = (_is_anything, "anything")
_SCALARS: Mapping[str, _Scalar] = {
    "string": _TEXT,
    "bytes": (_is_base64, "base64"),
    "time": (_is_time, "a time such as 2026-01-02T03:04:05Z"),
    "microTime": (_is_micro_time, "a time in microseconds, such as 2026-01-02T03:04:05.000006Z"),
    "duration": _TEXT,
    "quantity": (_is_quantity, "a quantity such as 1500m or 2Gi"),
    "intOrString": (lambda value: _is_string(value) or _is_integer(value), "a whole number or a string"),
    "bool": (lambda value: isinstance(value, bool), "true or false"),
    **dict.fromkeys(("int32", "int64", "uint8", "uint32", "uint64"), _WHOLE),
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

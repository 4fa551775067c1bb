"""Reading Kubernetes' protobuf into the JSON it stands for.

A body is four magic bytes and an envelope that names the kind of the object inside. What becomes of its fields is in
the table of fields. Go writes fields that have no pointer even when they are empty; those that JSON would leave out
are left out here, so that an object is the same whichever way it came.
"""

import base64
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from spinney.api.builtin_fields.table import Field, FieldTable, FieldType, Message
from spinney.api.durations import format_duration
from spinney.api.struct import JSON
from spinney.server.exchange.wire import BYTES, FIXED32, FIXED64, MalformedMessage, read_message, read_varints, signed

MAGIC = b"k8s\x00"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class NotBuiltIn(ValueError):
    """A protobuf object of a kind that is not built in: only JSON can carry those."""


def decode_object(table: FieldTable, body: bytes) -> JSON:
    """Return the object in a protobuf body; raise :class:`MalformedMessage` or :class:`NotBuiltIn`."""
    if not body.startswith(MAGIC):
        raise MalformedMessage("the body does not begin with the four bytes that mark Kubernetes' protobuf")
    envelope = _last_values(body[len(MAGIC) :])
    type_meta = _last_values(_as_bytes(envelope.get(1, b"")))
    api_version, kind = (_text(_as_bytes(type_meta.get(number, b""))) for number in (1, 2))
    message = table.kind(api_version, kind)
    if message is None:
        raise NotBuiltIn(f"{kind!r} of {api_version!r} is not a built-in kind")
    raw = _as_bytes(envelope.get(2, b""))
    return {"apiVersion": api_version, "kind": kind, **decode_message(table, message, raw)}


def decode_message(table: FieldTable, message: Message, data: bytes) -> JSON:
    """Return a message as JSON; fields that the release does not have are skipped."""
    found: JSON = {}
    fields = message.by_number
    for number, wire_type, value in read_message(data):
        field = fields.get(number)
        if field is None:
            continue
        if field.inline:
            found |= decode_message(table, table.message(field.type.name), _as_bytes(value))
        else:
            _put(table, found, field, wire_type, value)
    return found


def _put(table: FieldTable, found: JSON, field: Field, wire_type: int, value: int | bytes) -> None:
    match field.type.form:
        case "list":
            element = field.type.element
            listed: list[Any] = found.setdefault(field.name, [])
            if wire_type == BYTES and element.name in _VARINTS:
                listed += [_VARINTS[element.name](each) for each in read_varints(_as_bytes(value))]
            else:
                listed.append(_value(table, element, wire_type, value))
        case "map":
            key, content = _entry(table, field.type.element, _as_bytes(value))
            found.setdefault(field.name, {})[key] = content
        case _:
            decoded = _value(table, field.type, wire_type, value)
            if decoded is not None and (decoded or not field.omit_empty):
                found[field.name] = decoded


def _value(table: FieldTable, kind: FieldType, wire_type: int, value: int | bytes) -> Any:
    if kind.form == "message":
        return decode_message(table, table.message(kind.name), _as_bytes(value))
    if kind.form == "items":
        return [_value(table, kind.element, each[1], each[2]) for each in read_message(_as_bytes(value))]
    if kind.name in _VARINTS:
        if not isinstance(value, int):
            raise MalformedMessage(f"wire type {wire_type} where an integer was expected")
        return _VARINTS[kind.name](value)
    if kind.name in _FLOATS:
        return _float(_as_bytes(value), wire_type)
    if kind.name in _SCHEMAS:
        return _SCHEMAS[kind.name](table, _as_bytes(value))
    return _TEXTS[kind.name](_as_bytes(value))


def _entry(table: FieldTable, kind: FieldType, data: bytes) -> tuple[str, Any]:
    key, content = "", None
    for number, wire_type, value in read_message(data):
        if number == 1:
            key = _text(_as_bytes(value))
        elif number == 2:
            content = _value(table, kind, wire_type, value)
    return key, "" if content is None and kind.name == "string" else content


def _as_bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise MalformedMessage(f"the integer {value} where bytes were expected")
    return value


def _integer(value: int | bytes, what: str) -> int:
    if not isinstance(value, int):
        raise MalformedMessage(f"{what} holds bytes where an integer was expected")
    return value


def _last_values(data: bytes) -> Mapping[int, int | bytes]:
    return {number: value for number, _, value in read_message(data)}


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise MalformedMessage(f"a string is not UTF-8: {error}") from error


def _float(data: bytes, wire_type: int) -> float:
    if wire_type not in {FIXED64, FIXED32}:
        raise MalformedMessage(f"wire type {wire_type} where a floating point number was expected")
    number: float = struct.unpack("<d" if wire_type == FIXED64 else "<f", data)[0]
    return int(number) if number.is_integer() else number


def _quantity(data: bytes) -> str:
    return _text(_as_bytes(_last_values(data).get(1, b""))) or "0"


def _int_or_string(data: bytes) -> int | str:
    values = _last_values(data)
    if values.get(1, 0) == 1:
        return _text(_as_bytes(values.get(3, b"")))
    return signed(_integer(values.get(2, 0), "an IntOrString"))


def _moment(data: bytes) -> datetime:
    values = _last_values(data)
    seconds, nanoseconds = values.get(1, 0), values.get(2, 0)
    if not isinstance(seconds, int) or not isinstance(nanoseconds, int):
        raise MalformedMessage("a time holds bytes where integers were expected")
    try:
        return _EPOCH + timedelta(seconds=signed(seconds), microseconds=nanoseconds // 1000)
    except OverflowError as error:
        raise MalformedMessage(f"{signed(seconds)} seconds is not a time of the calendar") from error


def _time(data: bytes) -> str | None:
    return _moment(data).strftime("%Y-%m-%dT%H:%M:%SZ") if data else None


def _micro_time(data: bytes) -> str | None:
    return _moment(data).strftime("%Y-%m-%dT%H:%M:%S.%fZ") if data else None


def _duration(data: bytes) -> str:
    nanoseconds = _integer(_last_values(data).get(1, 0), "a duration")
    return format_duration(timedelta(microseconds=signed(nanoseconds) // 1000))


def _raw(data: bytes) -> Any:
    raw = _as_bytes(_last_values(data).get(1, b""))
    if not raw:
        return None
    try:
        return msgspec.json.decode(raw)
    except msgspec.DecodeError as error:
        raise MalformedMessage(f"embedded JSON cannot be read: {error}") from error


def _schema(table: FieldTable, data: bytes) -> JSON:
    return decode_message(table, table.message("apiextensions.v1.JSONSchemaProps"), data)


def _schema_or_array(table: FieldTable, data: bytes) -> Any:
    single: Any = None
    several = []
    for number, _, value in read_message(data):
        if number == 1:
            single = _schema(table, _as_bytes(value))
        elif number == 2:
            several.append(_schema(table, _as_bytes(value)))
    return several or single


def _schema_or_bool(table: FieldTable, data: bytes) -> Any:
    values = _last_values(data)
    return _schema(table, _as_bytes(values[2])) if 2 in values else bool(values.get(1, 0))


def _schema_or_strings(table: FieldTable, data: bytes) -> Any:
    values = _last_values(data)
    if 1 in values:
        return _schema(table, _as_bytes(values[1]))
    return [_text(_as_bytes(value)) for number, _, value in read_message(data) if number == 2]


_VARINTS: Mapping[str, Callable[[int], int | bool]] = {
    "bool": bool,
    "int32": signed,
    "int64": signed,
    "uint8": int,
    "uint32": int,
    "uint64": int,
}
_FLOATS = ("float32", "float64")
_TEXTS: Mapping[str, Callable[[bytes], Any]] = {
    "string": _text,
    "bytes": lambda data: base64.b64encode(data).decode(),
    "quantity": _quantity,
    "intOrString": _int_or_string,
    "time": _time,
    "microTime": _micro_time,
    "duration": _duration,
    "raw": _raw,
}
_SCHEMAS: Mapping[str, Callable[[FieldTable, bytes], Any]] = {
    "schemaOrArray": _schema_or_array,
    "schemaOrBool": _schema_or_bool,
    "schemaOrStrings": _schema_or_strings,
}

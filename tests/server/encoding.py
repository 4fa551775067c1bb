"""Writing JSON as Kubernetes' protobuf, the way Go clients send it: the reverse of what the server does."""

import base64
import json
import struct
from datetime import datetime
from typing import Any

from spinney.api.builtin_fields import FieldTable
from spinney.api.builtin_fields.table import FieldType, Message
from spinney.api.struct import JSON


def encoded(table: FieldTable, obj: JSON) -> bytes:
    """Return an object with its envelope."""
    message = table.kind(obj["apiVersion"], obj["kind"])
    assert message is not None
    type_meta = _bytes(1, obj["apiVersion"].encode()) + _bytes(2, obj["kind"].encode())
    content = {name: value for name, value in obj.items() if name not in {"apiVersion", "kind"}}
    return b"k8s\x00" + _bytes(1, type_meta) + _bytes(2, _message(table, message, content)) + _bytes(3, b"")


def _message(table: FieldTable, message: Message, obj: JSON) -> bytes:
    parts = []
    for field in message.fields:
        if field.inline:
            inner = table.message(field.type.name)
            known = {name: value for name, value in obj.items() if name in inner.by_name}
            parts.append(_bytes(field.number, _message(table, inner, known)))
        elif field.name in obj:
            parts.append(_field(table, field.number, field.type, obj[field.name]))
    return b"".join(parts)


def _field(table: FieldTable, number: int, kind: FieldType, value: Any) -> bytes:
    match kind.form:
        case "list":
            return b"".join(_field(table, number, kind.element, each) for each in value)
        case "map":
            entries = [(_bytes(1, key.encode()), _field(table, 2, kind.element, item)) for key, item in value.items()]
            return b"".join(_bytes(number, key + item) for key, item in entries)
        case "items":
            return _bytes(number, b"".join(_field(table, 1, kind.element, each) for each in value))
        case "message":
            return _bytes(number, _message(table, table.message(kind.name), value))
        case _:
            return _scalar(number, kind.name, value)


def _scalar(number: int, name: str, value: Any) -> bytes:
    match name:
        case "string":
            return _bytes(number, value.encode())
        case "bytes":
            return _bytes(number, base64.b64decode(value))
        case "quantity":
            return _bytes(number, _bytes(1, value.encode()))
        case "intOrString" if isinstance(value, str):
            return _bytes(number, _integer(1, 1) + _integer(2, 0) + _bytes(3, value.encode()))
        case "intOrString":
            return _bytes(number, _integer(1, 0) + _integer(2, value) + _bytes(3, b""))
        case "time" | "microTime":
            moment = datetime.fromisoformat(value)
            return _bytes(number, _integer(1, int(moment.timestamp())) + _integer(2, moment.microsecond * 1000))
        case "raw":
            return _bytes(number, _bytes(1, json.dumps(value).encode()))
        case "float32" | "float64":
            return _varint(number << 3 | 1) + struct.pack("<d", value)
        case _:
            return _integer(number, value)


def _bytes(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _integer(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value % (1 << 64))


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)

"""OpenAPI v2 in protobuf, in the messages of gnostic's ``OpenAPIv2.proto``, which is what kubectl reads.

Only what :mod:`spinney.server.about.openapi_v2` writes is encoded; the numbers are those of the published messages.
"""

import struct
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from spinney.api.struct import JSON

_OPERATIONS = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}
_TEXTS = {"$ref": 1, "format": 2, "title": 3, "description": 4, "pattern": 13}
_REALS = {"multipleOf": 6, "maximum": 7, "minimum": 9}
_FLAGS = {"exclusiveMaximum": 8, "exclusiveMinimum": 10, "uniqueItems": 16}
_WHOLES = {"maxLength": 11, "minLength": 12, "maxItems": 14, "minItems": 15, "maxProperties": 17, "minProperties": 18}


def encoded(document: JSON) -> bytes:
    """Return a version 2 document as a ``Document`` message."""
    info = _text(1, document["info"]["title"]) + _text(2, document["info"]["version"])
    paths = b"".join(_part(2, _named(name, _path(item))) for name, item in document["paths"].items())
    definitions = _properties(document["definitions"])
    return _text(1, document["swagger"]) + _part(2, info) + _part(8, paths) + _part(9, definitions)


def _path(item: JSON) -> bytes:
    operations = (_part(_OPERATIONS[name], _operation(item[name])) for name in item if name in _OPERATIONS)
    return b"".join(operations) + _each(9, map(_parameter, item.get("parameters") or ()))


def _operation(operation: JSON) -> bytes:
    responses = b"".join(
        _part(1, _named(code, _part(1, _response(each)))) for code, each in operation["responses"].items()
    )
    return (
        _text(5, operation["operationId"])
        + _texts(6, operation["produces"])
        + _texts(7, operation["consumes"])
        + _each(8, map(_parameter, operation["parameters"]))
        + _part(9, responses)
        + _texts(10, operation["schemes"])
        + _extensions(13, operation)
    )


def _response(response: JSON) -> bytes:
    schema = response.get("schema")
    return _text(1, response["description"]) + (b"" if schema is None else _part(2, _part(1, _schema(schema))))


def _parameter(parameter: JSON) -> bytes:
    """Return a ``ParametersItem``: a body, or a parameter of the path or the query."""
    name, required = parameter["name"], parameter.get("required", False)
    if parameter["in"] == "body":
        body = _text(2, name) + _text(3, "body") + _flag(4, required) + _part(5, _schema(parameter["schema"]))
        return _part(1, _part(1, body))
    in_path = parameter["in"] == "path"
    content = _flag(1, required) + _text(2, parameter["in"]) + _text(4, name)
    content += _text(5 if in_path else 6, parameter["type"])
    return _part(1, _part(2, _part(4 if in_path else 3, content)))


def _schema(schema: JSON) -> bytes:
    found = b"".join(_text(number, schema[name]) for name, number in _TEXTS.items() if name in schema)
    found += b"".join(_real(number, schema[name]) for name, number in _REALS.items() if name in schema)
    found += b"".join(_flag(number, schema[name]) for name, number in _FLAGS.items() if name in schema)
    found += b"".join(_whole(number, schema[name]) for name, number in _WHOLES.items() if name in schema)
    found += _texts(19, schema.get("required") or ())
    found += _each(20, map(_anything, schema.get("enum") or ()))
    further = schema.get("additionalProperties")
    if further is not None:
        found += _part(21, _flag(2, further) if isinstance(further, bool) else _part(1, _schema(further)))
    if "type" in schema:
        found += _part(22, _text(1, schema["type"]))
    if "items" in schema:
        found += _part(23, _part(1, _schema(schema["items"])))
    if "properties" in schema:
        found += _part(25, _properties(schema["properties"]))
    return found + _extensions(31, schema)


def _properties(schemas: Mapping[str, JSON]) -> bytes:
    return b"".join(_part(1, _named(name, _schema(schema))) for name, schema in schemas.items())


def _extensions(number: int, content: JSON) -> bytes:
    extensions = {name: value for name, value in content.items() if name.startswith("x-")}
    return b"".join(_part(number, _named(name, _anything(value))) for name, value in extensions.items())


def _anything(value: Any) -> bytes:
    """Return an ``Any``: YAML, and JSON is YAML."""
    return _part(2, msgspec.json.encode(value) + b"\n")


def _named(name: str, content: bytes) -> bytes:
    return _text(1, name) + _part(2, content)


def _each(number: int, parts: Iterable[bytes]) -> bytes:
    return b"".join(_part(number, part) for part in parts)


def _texts(number: int, texts: Iterable[str]) -> bytes:
    return b"".join(_part(number, text.encode()) for text in texts)


def _text(number: int, text: str) -> bytes:
    return _part(number, text.encode()) if text else b""


def _flag(number: int, value: bool) -> bytes:
    return _varint(number << 3) + b"\x01" if value else b""


def _whole(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _real(number: int, value: float) -> bytes:
    return _varint(number << 3 | 1) + struct.pack("<d", value)


def _part(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)

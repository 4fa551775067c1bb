"""Structural OpenAPI v3 schemas from struct types.

Kubernetes accepts a subset of OpenAPI for custom resources: every node has a type, there are no references, and unions
exist only as ``x-kubernetes-int-or-string``. Struct types map onto that subset directly: an optional field loses its
``None``, a tuple becomes an array, a mapping an object with ``additionalProperties``, a quantity an int-or-string. What
a type cannot say (bounds, enums, list keys, CEL rules, defaults) comes from the field's annotations, see
:mod:`spinney.api.fields`; what a field means, from :mod:`spinney.api.schema.meanings`.
"""

import inspect as python_inspect
from typing import Any, Final

from msgspec import inspect

from spinney.api.schema.meanings import MEANINGS
from spinney.api.struct import JSON

QUANTITY_PATTERN: Final = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$"


class NotStructural(TypeError):
    """A type that no structural schema describes."""


def structural_schema(kind: type) -> JSON:
    """Return the structural schema of an API kind: ``metadata`` is left to the API server."""
    schema = _schema(inspect.type_info(kind))
    properties = schema["properties"]
    properties["apiVersion"] = {"type": "string"}
    properties["kind"] = {"type": "string"}
    properties["metadata"] = {"type": "object"}
    return schema


def _schema(node: inspect.Type) -> JSON:
    match node:
        case inspect.Metadata(type=inner, extra_json_schema=keywords):
            return _ordered({**_schema(inner), **(keywords or {})})
        case inspect.UnionType(types=types):
            return _union([t for t in types if not isinstance(t, inspect.NoneType)])
        case inspect.StructType():
            return _object(node)
        case inspect.DictType(value_type=inspect.AnyType()):
            return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        case inspect.DictType(value_type=values):
            return {"type": "object", "additionalProperties": _schema(values)}
        case inspect.VarTupleType(item_type=items) | inspect.ListType(item_type=items):
            return {"type": "array", "items": _schema(items)}
        case inspect.LiteralType(values=values):
            return {"type": "string", "enum": list(values)}
        case inspect.AnyType():
            return {"x-kubernetes-preserve-unknown-fields": True}
    return _scalar(node)


def _scalar(node: inspect.Type) -> JSON:
    match node:
        case inspect.StrType():
            return {"type": "string"}
        case inspect.BoolType():
            return {"type": "boolean"}
        case inspect.IntType():
            return {"type": "integer"}
        case inspect.FloatType():
            return {"type": "number"}
        case inspect.DateTimeType():
            return {"type": "string", "format": "date-time"}
    raise NotStructural(f"{node} has no structural schema; describe the field with spinney.api.fields.schema")


def _union(types: list[inspect.Type]) -> JSON:
    if len(types) == 1:
        return _schema(types[0])
    bare = [t.type if isinstance(t, inspect.Metadata) else t for t in types]
    kinds = {type(t) for t in bare}
    if kinds == {inspect.IntType, inspect.FloatType}:
        return {"type": "number"}
    if kinds == {inspect.IntType, inspect.FloatType, inspect.StrType}:
        return {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": QUANTITY_PATTERN,
            "x-kubernetes-int-or-string": True,
        }
    raise NotStructural(f"a union of {sorted(k.__name__ for k in kinds)} has no structural schema")


def _object(node: inspect.StructType) -> JSON:
    schema: JSON = {"type": "object"}
    if documentation := python_inspect.getdoc(node.cls):
        schema["description"] = " ".join(documentation.split("\n\n", maxsplit=1)[0].split())
    required = [field.encode_name for field in node.fields if field.required]
    if required:
        schema["required"] = sorted(required)
    schema["properties"] = {field.encode_name: _field(node.cls, field) for field in node.fields}
    return _ordered(schema)


def _field(owner: type, field: inspect.Field) -> JSON:
    """Return the schema of a field, with what it means there instead of what its type says of itself."""
    meaning = MEANINGS.get(owner, {}).get(field.name)
    schema = _schema(field.type)
    return _ordered({**schema, "description": meaning}) if meaning is not None else schema


def _ordered(schema: JSON) -> JSON:
    """Put the keywords in the order a reader looks for them."""
    first: list[str] = ["description", "type", "format", "enum", "default"]
    known: dict[str, Any] = {key: schema[key] for key in first if key in schema}
    return known | {key: found for key, found in schema.items() if key not in known}

"""OpenAPI schemas of the built-in types: the table of fields with how patches merge them, and our texts."""

from collections.abc import Iterable, Mapping

from spinney.api.builtin_fields.table import Field, FieldTable, FieldType, Message
from spinney.api.struct import JSON
from spinney.server.about.descriptions import OF_ALL, description

_REFERENCE = "#/components/schemas/"
_METADATA = "metadata"  # the field that makes a type the type of objects
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_SCALARS: Mapping[str, JSON] = {
    "string": {"type": "string"},
    "bytes": {"type": "string", "format": "byte"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "uint8": {"type": "integer", "format": "int32"},
    "uint32": {"type": "integer", "format": "int32"},
    "uint64": {"type": "integer", "format": "int64"},
    "float32": {"type": "number", "format": "float"},
    "float64": {"type": "number", "format": "double"},
    "quantity": {"x-kubernetes-int-or-string": True, "type": "string", "format": "quantity"},
    "intOrString": {"x-kubernetes-int-or-string": True, "type": "string", "format": "int-or-string"},
    "time": {"type": "string", "format": "date-time"},
    "microTime": {"type": "string", "format": "date-time"},
    "duration": {"type": "string"},
}
_ANYTHING: JSON = {"type": "object", _PRESERVE: True}


_HOMES: Mapping[str, str] = {  # of the types that are not in the API's own repository, by group
    "meta": "io.k8s.apimachinery.pkg.apis.",
    "apiextensions": "io.k8s.apiextensions-apiserver.pkg.apis.",
    "apiregistration": "io.k8s.kube-aggregator.pkg.apis.",
}


def schema_name(name: str) -> str:
    """Return what a type is called among the schemas: by where Kubernetes has it."""
    return _HOMES.get(name.partition(".")[0], "io.k8s.api.") + name


def schemas(table: FieldTable, messages: Iterable[Message]) -> dict[str, JSON]:
    """Return the schemas of these types and of all that they refer to."""
    found: dict[str, JSON] = {}
    waiting = list(messages)
    while waiting:
        message = waiting.pop()
        name = schema_name(message.name)
        if name in found:
            continue
        found[name] = message_schema(message)
        for field in message.by_name.values():
            referred = _referred(field.type)
            if referred:
                waiting.append(table.message(referred))
    return found


def message_schema(message: Message) -> JSON:
    """Return the schema of one type."""
    schema: JSON = {"type": "object"}
    if text := description(message.name):
        schema["description"] = text
    if properties := {field.name: _field_schema(message, field) for field in message.by_name.values()}:
        schema["properties"] = properties
    return schema


def _field_schema(message: Message, field: Field) -> JSON:
    schema = _type_schema(field.type)
    text = description(message.name, field.name)
    if not text and _METADATA in message.by_name:
        text = OF_ALL.get(field.name, "")
    if text:
        schema["description"] = text
    if field.patch_strategy:
        schema["x-kubernetes-patch-strategy"] = field.patch_strategy
    if field.patch_merge_key:
        schema["x-kubernetes-patch-merge-key"] = field.patch_merge_key
    return schema


def _type_schema(kind: FieldType) -> JSON:
    match kind.form:
        case "message":
            return {"allOf": [{"$ref": _REFERENCE + schema_name(kind.name)}], "default": {}}
        case "list" | "items":
            return {"type": "array", "items": _type_schema(kind.element)}
        case "map":
            return {"type": "object", "additionalProperties": _type_schema(kind.element)}
        case _:
            return {**_SCALARS.get(kind.name, _ANYTHING)}


def _referred(kind: FieldType) -> str:
    while kind.of is not None:
        kind = kind.of
    return kind.name if kind.form == "message" else ""

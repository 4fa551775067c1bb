"""Checking custom resources against their schema, compiled once per version.

The structural schema is turned into JSON Schema (nullable, int-or-string and Kubernetes' extensions translated) for a
compiled validator; lists that are maps or sets are checked for duplicates here. On updates, what was wrong before and
was not touched is tolerated, so that a stricter schema does not lock old objects.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import jsonschema_rs

from spinney.api.field_error import FieldError, duplicate, invalid, not_supported, required, shown, too_long, too_many
from spinney.api.struct import JSON
from spinney.server.crd.formats import BOUNDS, CALLED, STRINGS
from spinney.server.exchange.status import bad_request

_ANNOTATIONS = ("default", "description", "example", "externalDocs", "title", "nullable")
_ABSENT = object()
_OURS = "kubernetes:"  # before the names of formats, so that they are not the JSON Schema's
_BOUNDED = "allOf"  # where the bounds of a number's format are


class SchemaValidator:
    """Validates objects of one version of one kind."""

    def __init__(self, schema: JSON) -> None:
        self._schema = schema
        formats = {f"{_OURS}{name}": check for name, check in STRINGS.items()}
        self._compiled = jsonschema_rs.Draft4Validator(json_schema(schema), validate_formats=True, formats=formats)
        self._unique = _with_unique_lists(schema)

    def validate(self, obj: JSON, old: JSON | None) -> list[FieldError]:
        """Return what is wrong with ``obj``, leaving out what ``old`` had wrong in the same place."""
        causes: list[FieldError] = []
        for error in self._errors(obj):
            path = list(error.instance_path)
            if old is not None and _at(old, path) == _at(obj, path):
                continue
            causes += _causes(error, path)
        causes += _duplicates(obj, old, self._schema, "", self._unique)
        return causes

    def _errors(self, obj: JSON) -> list[jsonschema_rs.ValidationError]:
        try:
            return [] if self._compiled.is_valid(obj) else list(self._compiled.iter_errors(obj))
        except ValueError as error:  # an error is told with its value, which may be too deep to be told
            raise bad_request(f"the object cannot be validated: {error}") from error


def json_schema(schema: JSON) -> JSON:
    """Return a structural schema as JSON Schema."""
    translated: JSON = {}
    for name, value in schema.items():
        if name.startswith("x-") or name in _ANNOTATIONS:
            continue
        if name == "properties":
            translated[name] = {key: json_schema(child) for key, child in value.items()}
        elif name in {"items", "not"} or (name == "additionalProperties" and isinstance(value, dict)):
            translated[name] = json_schema(value)
        elif name in {"allOf", "anyOf", "oneOf"}:
            translated[name] = [json_schema(each) for each in value]
        elif name != "format":
            translated[name] = grouped_flags(value) if name == "pattern" else value
    if "format" in schema:
        _add_format(translated, schema["format"])
    if schema.get("x-kubernetes-int-or-string"):
        translated["type"] = ["integer", "string"]
    if not translated.get("required", True):
        del translated["required"]  # an empty list is not allowed in this draft
    if schema.get("nullable"):
        if "type" in translated:
            types = translated["type"]
            translated["type"] = [*(types if isinstance(types, list) else [types]), "null"]
        if "enum" in translated:
            translated["enum"] = [*translated["enum"], None]
    return translated


def _add_format(translated: JSON, name: str) -> None:
    """Add a format: ours for strings, bounds for numbers, nothing for what is unknown."""
    if name in STRINGS:
        translated["format"] = f"{_OURS}{name}"
    elif name in BOUNDS:
        lowest, highest = BOUNDS[name]
        translated[_BOUNDED] = [*translated.get(_BOUNDED, ()), {"minimum": lowest, "maximum": highest}]


def field_path(path: list[str | int]) -> str:
    """Return a path as causes name it: ``spec.roles[0].name``."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def _causes(error: jsonschema_rs.ValidationError, path: list[str | int]) -> list[FieldError]:
    bound = error.kind.as_dict().get("limit") if error.kind.name in {"minimum", "maximum"} else None
    name = next((each for each, bounds in BOUNDS.items() if bound in bounds), None)
    if name is None or _BOUNDED not in error.schema_path:
        return [_cause(error, path)]
    field = field_path(path)
    kind = "number" if name == "float" else "integer"
    text = f'Invalid value: "": Checked value must be of type {kind} with format {name} in {field}'
    causes = [FieldError("FieldValueInvalid", "<nil>", text)]  # which is where Kubernetes says that this is
    if name == "int64":  # what does not fit is read as another type
        causes.insert(0, _of_another_type(field, "float64", "int64"))
    return causes


def _cause(error: jsonschema_rs.ValidationError, path: list[str | int]) -> FieldError:
    field, value, kind = field_path(path), error.instance, error.kind
    facts = kind.as_dict()
    match kind.name:
        case "required":
            return required(field_path([*path, facts["property"]]))
        case "enum":
            return not_supported(field, value, [str(each) for each in facts.get("options") or ()])
        case "type":
            types = facts.get("types") or facts.get("type") or ()
            wanted = types if isinstance(types, str) else ",".join(str(each) for each in types)
            return _of_another_type(field, value, wanted)
        case "format":
            name = str(facts["format"]).removeprefix(_OURS)
            return _of_another_type(field, value, CALLED.get(name, name))
        case "maxItems":
            count = len(value) if isinstance(value, list) else 0
            return too_many(field, count, facts["limit"])
        case "maxLength":
            return too_long(field, f"may not be more than {facts['limit']} bytes")
    return invalid(field, value, f"{field} in body is not acceptable: {error.message}")


def _of_another_type(field: str, value: Any, wanted: str) -> FieldError:
    fault = invalid(field, value, f"{field} in body must be of type {wanted}: {shown(value)}")
    return replace(fault, reason="FieldValueTypeInvalid")


def _at(value: Any, path: list[str | int]) -> Any:
    for step in path:
        found = isinstance(value, dict) and step in value
        if not found and isinstance(value, list) and isinstance(step, int):
            found = step < len(value)
        if not found:
            return _ABSENT
        value = value[step]
    return value


def _with_unique_lists(schema: JSON) -> frozenset[int]:
    """Return the ids of those parts of a schema that are, or have in them, lists that are maps or sets."""
    children = [*(schema.get("properties") or {}).values(), schema.get("items"), schema.get("additionalProperties")]
    found = frozenset[int]().union(*(_with_unique_lists(child) for child in children if isinstance(child, dict)))
    return found | {id(schema)} if found or schema.get("x-kubernetes-list-type") in {"map", "set"} else found


def _duplicates(value: Any, old: Any, schema: JSON, path: str, unique: frozenset[int]) -> Iterator[FieldError]:
    """Return what stands twice in lists that are maps or sets; ``unique`` are the parts of the schema with any."""
    if id(schema) not in unique:
        return
    if isinstance(value, dict):
        additional = schema.get("additionalProperties")
        properties = schema.get("properties") or {}
        for name, child in value.items():
            below = properties.get(name, additional)
            if isinstance(below, dict):
                before = old.get(name) if isinstance(old, dict) else None
                yield from _duplicates(child, before, below, f"{path}.{name}" if path else name, unique)
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        if value != old:
            yield from _repeated(value, schema, path)
        if id(schema["items"]) in unique:
            for index, item in enumerate(value):
                before = old[index] if isinstance(old, list) and index < len(old) else None
                yield from _duplicates(item, before, schema["items"], f"{path}[{index}]", unique)


def _repeated(items: list[Any], schema: JSON, path: str) -> Iterator[FieldError]:
    kind = schema.get("x-kubernetes-list-type")
    if kind not in {"map", "set"}:
        return
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    seen: list[Any] = []
    for index, item in enumerate(items):
        if kind == "map" and isinstance(item, dict):
            identity: Any = {key: item.get(key) for key in keys}
            told = ", ".join(f"{key}={item.get(key)}" for key in keys)
        else:
            identity = told = item
        if identity in seen:
            yield duplicate(f"{path}[{index}]", told)
        seen.append(identity)


_TOKEN: Final = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?(?P<flags>[a-zA-Z]*-?[a-zA-Z]+)\)|[()|]|[^\\\[()|]+|.", re.S
)


def grouped_flags(pattern: str) -> str:
    """Return a pattern in which flags such as ``(?i)`` hold in a group: up to the end of the one around them."""
    if "(?" not in pattern:
        return pattern
    written: list[str] = []
    open_flags: list[list[str]] = [[]]  # of each group around, the flags set in it so far
    for token in _TOKEN.finditer(pattern):
        text, flags = token[0], token["flags"]
        if flags is not None:
            open_flags[-1].append(flags)
            written.append(f"(?{flags}:")
            continue
        if text == "(":
            open_flags.append([])
        elif text == ")" and len(open_flags) > 1:
            written.append(")" * len(open_flags.pop()))
        elif text == "|":  # each alternative has the flags
            written.append(")" * len(open_flags[-1]))
            text += "".join(f"(?{each}:" for each in open_flags[-1])
        written.append(text)
    return "".join(written) + ")" * len(open_flags[0])

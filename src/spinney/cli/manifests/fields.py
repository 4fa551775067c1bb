"""Fields of a manifest that its kind does not have, and values that its fields cannot hold.

The API server, asked strictly (as ``kubectl apply`` does), refuses both before any rule is looked at. Our own kinds are
held to the schema of their CRD. Parts that are Kubernetes' own (metadata, pod specs, device claims, metrics of an
autoscaler) are open in that schema, so they are held to the table of fields of the newest Kubernetes we know: a field
misspelt there would be dropped without a word when the object is made from it.
"""

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from spinney.api.builtin_fields import field_table
from spinney.api.builtin_fields.misfits import UnknownField, WrongValue, misfits
from spinney.api.documents import Document, DocumentProblem, Step, nearest, steps
from spinney.api.field_error import FieldPath
from spinney.api.grove import POD_CLIQUE, POD_CLIQUE_SET
from spinney.api.resource import Resource
from spinney.api.schema.structural import structural_schema
from spinney.api.schema.validate_carried import NEWEST
from spinney.api.struct import JSON
from spinney.server.crd.structure import fill_defaults, prune
from spinney.server.crd.validation import SchemaValidator

Fault = tuple[tuple[Step, ...], str]
"""Where something is wrong, and what."""


@dataclass(frozen=True)
class BuiltinPart:
    """A part of a manifest that belongs to a built-in kind: where it stands, and which field of that kind it is."""

    at: tuple[Step, ...]
    value: Any
    api_version: str
    kind: str
    field: str


def field_problems(resource: Resource, kind: type, document: Document) -> list[DocumentProblem]:
    """Return every unknown field, and every value of the wrong type, in the order of the file."""
    metadata = BuiltinPart(("metadata",), document.value.get("metadata"), "v1", "Pod", "metadata")
    faults = [*_unknown(document.value, _schema(kind), ())]
    for part in (metadata, *_parts(resource, document)):
        faults += _faults_of(part)
    return [document.problem(*each) for each in faults]


def is_builtin(api_version: str, kind: str) -> bool:
    """Tell whether a kind is Kubernetes' own, so that its fields are known."""
    return field_table(NEWEST).kind(api_version, kind) is not None


def builtin_field_problems(api_version: str, kind: str, document: Document) -> list[DocumentProblem]:
    """Return the same of an object of Kubernetes' own; nothing of a kind that is not in the table of fields."""
    message = field_table(NEWEST).kind(api_version, kind)
    if message is None:
        return []
    faults: list[Fault] = []
    for name, value in document.value.items():
        if name in message.by_name:
            faults += _faults_of(BuiltinPart((name,), value, api_version, kind, name))
        elif name not in {"apiVersion", "kind"}:
            faults.append(((str(name),), f"unknown key; {nearest(str(name), list(message.by_name))}"))
    return [document.problem(*each) for each in faults]


def schema_faults(kind: type, document: Document) -> list[tuple[str, str]]:
    """Return path and text of what the CRD's schema says against a manifest, after its defaults were filled in."""
    value, schema = copy.deepcopy(document.value), _schema(kind)
    prune(value, schema, root=True)
    fill_defaults(value, schema)
    return [(cause.path, cause.text) for cause in SchemaValidator(schema).validate(value, None)]


@cache
def _schema(kind: type) -> JSON:
    return structural_schema(kind)


def _unknown(value: Any, schema: JSON, path: tuple[Step, ...]) -> Iterator[Fault]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unknown(item, schema.get("items") or {}, (*path, index))
    elif isinstance(value, dict) and "properties" in schema:
        known = schema["properties"]
        for name, item in value.items():
            if name in known:
                yield from _unknown(item, known[name], (*path, name))
            else:
                yield (*path, str(name)), f"unknown key; {nearest(str(name), list(known))}"


def _parts(resource: Resource, document: Document) -> Iterator[BuiltinPart]:
    """Yield the parts of a manifest that our schemas leave open."""
    if resource is POD_CLIQUE:
        yield from _of_clique(document, ("spec",))
    elif resource is POD_CLIQUE_SET:
        template = ("spec", "template")
        for where in _items(document, (*template, "cliques")):
            yield from _of_clique(document, (*where, "spec"))
        for where in _items(document, (*template, "podCliqueScalingGroups")):
            yield _metrics(document, (*where, "scaleConfig"))
        for where in _items(document, (*template, "resourceClaimTemplates")):
            here = (*where, "templateSpec")
            yield BuiltinPart(here, document.at(*here).value, "resource.k8s.io/v1", "ResourceClaimTemplate", "spec")


def _of_clique(document: Document, at: tuple[Step, ...]) -> Iterator[BuiltinPart]:
    here = (*at, "podSpec")
    yield BuiltinPart(here, document.at(*here).value, "v1", "Pod", "spec")
    yield _metrics(document, (*at, "autoScalingConfig"))


def _metrics(document: Document, at: tuple[Step, ...]) -> BuiltinPart:
    here = (*at, "metrics")
    found = document.at(*here).value
    return BuiltinPart(at, {"metrics": found} if found else {}, "autoscaling/v2", "HorizontalPodAutoscaler", "spec")


def _items(document: Document, at: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    found = document.at(*at).value
    for index in range(len(found) if isinstance(found, list) else 0):
        yield (*at, index)


def _faults_of(part: BuiltinPart) -> Iterator[Fault]:
    table = field_table(NEWEST)
    message = table.kind(part.api_version, part.kind)
    if message is None or not isinstance(part.value, dict):
        return
    for found in misfits(table, message.by_name[part.field].type, part.value, FieldPath()):
        path = (*part.at, *steps(str(found.path)))
        if isinstance(found, UnknownField):
            hint = nearest(found.name, list(found.known))
            # Kubernetes' own objects have too many fields to list, and another release may have more.
            hint = hint if hint.startswith("did you mean") else f"Kubernetes {NEWEST} has no such field here"
            yield path, f"unknown key; {hint}"
        else:
            yield path, f"Invalid value: {_shown(found)}: must be {found.expected}"


def _shown(wrong: WrongValue) -> str:
    """Return a value as YAML read it, with a hint where quotes would have made a text of it."""
    shown = json.dumps(wrong.value, default=str, ensure_ascii=False)
    quotable = wrong.expected == "a string" and not isinstance(wrong.value, dict | list)
    return f"{shown} without quotes" if quotable else shown

"""OpenAPI v3, as far as kubectl needs it: which kinds there are, their schemas, and that fields are validated.

kubectl looks for the kind among the components, for the ``fieldValidation`` parameter on its PATCH operation, and
(for ``explain``) at the schema. Schemas of custom kinds are theirs; built-in kinds are described by their outline
only, with every field allowed.
"""

import hashlib
from typing import Any

import msgspec

from spinney.api.struct import JSON
from spinney.server.exchange import Request, Response
from spinney.server.kinds import Kind, Registry, Shape
from spinney.server.responding import reply
from spinney.server.status import no_such_path

_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_QUERY = ("dryRun", "fieldManager", "fieldValidation", "force")


class OpenApi:
    """Documents by group and version, made when asked for and kept until the registry changes."""

    def __init__(self, registry: Registry, version: str) -> None:
        self._registry = registry
        self._version = version
        self._documents: dict[str, bytes] = {}
        self._generation = -1

    def serve(self, request: Request) -> Response:
        """Answer ``/openapi/v3`` and the documents below it."""
        if self._generation != self._registry.generation:
            self._documents = {}
            self._generation = self._registry.generation
        name = request.path.removeprefix("/openapi/v3").strip("/")
        if name:
            return reply(self._document(name))
        paths = {}
        for each in dict.fromkeys(_document_name(kind) for kind in self._registry):
            digest = hashlib.sha256(self._document(each)).hexdigest()[:32].upper()
            paths[each] = {"serverRelativeURL": f"/openapi/v3/{each}?hash={digest}"}
        return reply(msgspec.json.encode({"paths": paths}))

    def _document(self, name: str) -> bytes:
        if name not in self._documents:
            kinds = [kind for kind in self._registry if _document_name(kind) == name]
            if not kinds:
                raise no_such_path()
            self._documents[name] = msgspec.json.encode(_described(kinds, self._version))
        return self._documents[name]


def _document_name(kind: Kind) -> str:
    resource = kind.resource
    return f"apis/{resource.group}/{resource.version}" if resource.group else f"api/{resource.version}"


def _described(kinds: list[Kind], version: str) -> JSON:
    paths: JSON = {}
    schemas: JSON = {"ObjectMeta": {"type": "object", "description": "Metadata of an object.", _PRESERVE: True}}
    for kind in kinds:
        schemas[_schema_name(kind)] = _schema(kind)
        paths |= _paths(kind)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": version},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _schema_name(kind: Kind) -> str:
    resource = kind.resource
    parts = [*reversed((resource.group or "core").split(".")), resource.version, resource.kind]
    return ".".join(parts)


def _schema(kind: Kind) -> JSON:
    resource = kind.resource
    if kind.schema is not None:
        schema: JSON = {**kind.schema}
    else:
        schema = {"type": "object", "description": f"{resource.kind} of {resource.api_version}.", _PRESERVE: True}
        schema["properties"] = {name: _outline(shape) for name, shape in kind.shape.fields.items()}
    properties = {**schema.get("properties", {})}
    properties.setdefault("apiVersion", {"type": "string"})
    properties.setdefault("kind", {"type": "string"})
    properties["metadata"] = {"allOf": [{"$ref": "#/components/schemas/ObjectMeta"}]}
    schema["properties"] = properties
    schema["x-kubernetes-group-version-kind"] = [
        {"group": resource.group, "version": resource.version, "kind": resource.kind}
    ]
    return schema


def _outline(shape: Shape) -> JSON:
    """Return what a merge shape says about a field, as a schema that allows everything else."""
    if shape.merge == "set":
        return {"type": "array", "items": {}, "x-kubernetes-list-type": "set", "x-kubernetes-patch-strategy": "merge"}
    if shape.merge == "map":
        return {
            "type": "array",
            "items": _outline(shape.item),
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": list(shape.keys),
            "x-kubernetes-patch-merge-key": shape.strategic_key,
            "x-kubernetes-patch-strategy": "merge",
        }
    if shape.merge == "atomic":
        return {_PRESERVE: True}
    outline: JSON = {"type": "object", _PRESERVE: True}
    if shape.fields:
        outline["properties"] = {name: _outline(child) for name, child in shape.fields.items()}
    return outline


def _paths(kind: Kind) -> JSON:
    resource = kind.resource
    collection = resource.path("{namespace}" if resource.namespaced else None)
    paths: JSON = {}
    if "create" in kind.verbs:
        paths[collection] = {"post": _operation(kind, "post")}
    if "patch" in kind.verbs:
        paths[f"{collection}/{{name}}"] = {
            "get": _operation(kind, "get"),
            "put": _operation(kind, "put"),
            "patch": _operation(kind, "patch"),
        }
    return paths


def _operation(kind: Kind, action: str) -> JSON:
    resource = kind.resource
    parameters = [] if action == "get" else list(_QUERY)
    schema: JSON = {"$ref": f"#/components/schemas/{_schema_name(kind)}"}
    content: dict[str, Any] = {"application/json": {"schema": schema}}
    return {
        "operationId": f"{action}{resource.version}{resource.kind}",
        "parameters": [{"name": name, "in": "query", "schema": {"type": "string"}} for name in parameters],
        "responses": {"200": {"description": "OK", "content": content}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": {
            "group": resource.group,
            "version": resource.version,
            "kind": resource.kind,
        },
    }

"""OpenAPI v3, as far as kubectl needs it: which kinds there are, their schemas, and that fields are validated.

kubectl looks for the kind among the components, for the ``fieldValidation`` parameter on its PATCH operation, and
(for ``explain``) at the schema. Schemas of custom kinds are theirs; those of built-in kinds come from the table of
fields, and their descriptions from :mod:`spinney.server.about.descriptions`.
"""

import hashlib
import operator
from collections.abc import Iterable

import msgspec

from spinney.api.builtin_fields import FieldTable
from spinney.api.struct import JSON
from spinney.server.about.descriptions import OF_ALL
from spinney.server.about.schemas import schema_name, schemas
from spinney.server.exchange.message import Request, Response
from spinney.server.exchange.responding import reply
from spinney.server.exchange.status import no_such_path
from spinney.server.kinds import Kind, KindRegistry

_METADATA = "meta.v1.ObjectMeta"
_KIND = "x-kubernetes-group-version-kind"
_COLLECTION = {"list": "list", "create": "post", "deletecollection": "deletecollection"}  # verb -> its name here
_OBJECT = {"get": "get", "update": "put", "patch": "patch", "delete": "delete"}
_SUBRESOURCE = {"get": "get", "update": "put", "patch": "patch"}
_METHODS = {
    "create": "post",
    "delete": "delete",
    "deletecollection": "delete",
    "get": "get",
    "list": "get",
    "patch": "patch",
    "update": "put",
}
_SELECTING = {"labelSelector": "string", "fieldSelector": "string", "limit": "integer", "continue": "string"}
_VERSIONS = {"resourceVersion": "string", "resourceVersionMatch": "string"}
_WRITING = {"dryRun": "string", "fieldManager": "string", "fieldValidation": "string"}
_DELETING = {"dryRun": "string", "gracePeriodSeconds": "integer", "propagationPolicy": "string"}
_QUERY = {
    "create": _WRITING,
    "delete": _DELETING,
    "deletecollection": {**_DELETING, **_SELECTING, **_VERSIONS},
    "get": {},
    "list": {**_SELECTING, **_VERSIONS, "watch": "boolean", "timeoutSeconds": "integer"},
    "patch": {**_WRITING, "force": "boolean"},
    "update": _WRITING,
}
_PATCHES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)


class OpenApi:
    """Documents by group and version, made when asked for and kept until their kinds change."""

    def __init__(self, registry: KindRegistry, fields: FieldTable, version: str) -> None:
        self._registry = registry
        self._fields = fields
        self._version = version
        self._documents: dict[str, tuple[list[Kind], bytes]] = {}

    def serve(self, request: Request) -> Response:
        """Answer ``/openapi/v3`` and the documents below it."""
        name = request.path.removeprefix("/openapi/v3").strip("/")
        if name:
            return reply(self._document(name))
        paths = {}
        for each in self._names():
            digest = hashlib.sha256(self._document(each)).hexdigest()[:32].upper()
            paths[each] = {"serverRelativeURL": f"/openapi/v3/{each}?hash={digest}"}
        return reply(msgspec.json.encode({"paths": paths}))

    def paths(self) -> list[str]:
        """Return where the documents are."""
        return ["/openapi/v3", *(f"/openapi/v3/{name}" for name in self._names())]

    def documents(self) -> list[JSON]:
        """Return every document, decoded."""
        return [msgspec.json.decode(self._document(name)) for name in self._names()]

    def _names(self) -> Iterable[str]:
        return dict.fromkeys(_document_name(kind) for kind in self._registry)

    def _document(self, name: str) -> bytes:
        kinds = [kind for kind in self._registry if _document_name(kind) == name]
        if not kinds:
            raise no_such_path()
        known = self._documents.get(name)
        if known is not None and len(known[0]) == len(kinds) and all(map(operator.is_, known[0], kinds)):
            return known[1]
        document = msgspec.json.encode(_described(kinds, self._fields, self._version))
        self._documents[name] = (kinds, document)
        return document


def _document_name(kind: Kind) -> str:
    resource = kind.resource
    return f"apis/{resource.group}/{resource.version}" if resource.group else f"api/{resource.version}"


def _described(kinds: list[Kind], fields: FieldTable, version: str) -> JSON:
    paths: JSON = {}
    components: JSON = schemas(fields, [fields.message(_METADATA)])
    for kind in kinds:
        resource = kind.resource
        message = None if kind.custom else fields.kind(resource.api_version, resource.kind)
        name = _custom_name(kind)
        if message is not None:
            name = schema_name(message.name)
            components |= schemas(fields, [message])
        components[name] = _schema(kind, components.get(name) or kind.schema or {"type": "object"})
        paths |= _paths(kind, name)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": version},
        "paths": paths,
        "components": {"schemas": components},
    }


def _custom_name(kind: Kind) -> str:
    resource = kind.resource
    return ".".join([*reversed(resource.group.split(".")), resource.version, resource.kind])


def _identity(kind: Kind) -> JSON:
    resource = kind.resource
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _schema(kind: Kind, schema: JSON) -> JSON:
    properties = {**schema.get("properties", {})}
    for name in ("apiVersion", "kind"):
        properties.setdefault(name, {"type": "string", "description": OF_ALL[name]})
    if kind.custom:
        properties["metadata"] = {"allOf": [{"$ref": f"#/components/schemas/{schema_name(_METADATA)}"}]}
    return {**schema, "properties": properties, _KIND: [_identity(kind)]}


def _paths(kind: Kind, schema: str) -> JSON:
    """Return every path of a kind with its operations."""
    resource = kind.resource
    collection = resource.path("{namespace}" if resource.namespaced else None)
    actions = {verb: action for verb, action in _COLLECTION.items() if verb in kind.verbs}
    paths: JSON = {collection: _path(kind, actions, schema, named=False)} if actions else {}
    if actions := {verb: action for verb, action in _OBJECT.items() if verb in kind.verbs}:
        paths[f"{collection}/{{name}}"] = _path(kind, actions, schema, named=True)
    if kind.status:
        paths[f"{collection}/{{name}}/status"] = _path(kind, _SUBRESOURCE, schema, named=True)
    return paths


def _path(kind: Kind, actions: dict[str, str], schema: str, *, named: bool) -> JSON:
    names = [*(["namespace"] if kind.resource.namespaced else ()), *(["name"] if named else ())]
    parameters = [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]
    operations = {_METHODS[verb]: _operation(kind, verb, action, schema) for verb, action in actions.items()}
    return {**operations, "parameters": parameters} if parameters else operations


def _operation(kind: Kind, verb: str, action: str, schema: str) -> JSON:
    resource = kind.resource
    reference = {"$ref": f"#/components/schemas/{schema}"}
    answer: JSON = reference if verb not in {"list", "delete", "deletecollection"} else {"type": "object"}
    described: JSON = {
        "operationId": f"{action}{resource.version}{resource.kind}",
        "parameters": [{"name": name, "in": "query", "schema": {"type": each}} for name, each in _QUERY[verb].items()],
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": answer}}}},
        "x-kubernetes-action": action,
        _KIND: _identity(kind),
    }
    if verb in {"create", "update"}:
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": reference}}}
    elif verb == "patch":
        kinds = _PATCHES if not kind.custom else tuple(each for each in _PATCHES if "strategic" not in each)
        described["requestBody"] = {"required": True, "content": {each: {"schema": {}} for each in kinds}}
    return described

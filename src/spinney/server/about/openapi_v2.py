"""OpenAPI v2, which older clients and generators read, made from the documents of version 3.

kubectl asks for it, in protobuf, where version 3 does not have what it looks for; others read JSON. Version 2 knows
less: of a custom kind's schema the parts that it has no words for (``oneOf``, ``nullable``, ...) are left out.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from spinney.api.struct import JSON
from spinney.server.about.openapi_gnostic import encoded
from spinney.server.exchange.message import Request, Response
from spinney.server.exchange.responding import reply
from spinney.server.exchange.status import not_acceptable
from spinney.server.kinds import KindRegistry

_JSON = "application/json"
_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_ASKED = {  # what a client may accept, and the form it then gets
    "*/*": _JSON,
    "application/*": _JSON,
    _JSON: _JSON,
    _PROTOBUF: _PROTOBUF,
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf": _PROTOBUF,
}
_V3, _V2 = "#/components/schemas/", "#/definitions/"
_UNKNOWN = ("oneOf", "anyOf", "not", "nullable", "default")
_KIND = "x-kubernetes-group-version-kind"
_SCHEMAS = ("items", "additionalProperties")


class OpenApiV2:
    """The document in both forms, made when asked for and kept until a kind changes."""

    def __init__(self, registry: KindRegistry, documents: Callable[[], list[JSON]], version: str) -> None:
        self._registry = registry
        self._documents = documents
        self._version = version
        self._made: tuple[int, dict[str, bytes]] = (-1, {})

    def serve(self, request: Request) -> Response:
        """Answer ``/openapi/v2`` in the form the client accepts."""
        accepted = [each.partition(";")[0].strip() for each in request.headers.get("accept", "*/*").split(",")]
        form = next((_ASKED[each] for each in accepted if each in _ASKED), None)
        if form is None:
            raise not_acceptable((_JSON, _PROTOBUF))
        generation, made = self._made
        if generation != self._registry.generation:
            made = {}
            self._made = (self._registry.generation, made)
        if form not in made:
            document = swagger(self._documents(), self._version)
            made[form] = msgspec.json.encode(document) if form == _JSON else encoded(document)
        return reply(made[form], content_type=form)


def swagger(documents: list[JSON], version: str) -> JSON:
    """Return the version 2 document that says what several of version 3 say."""
    paths: JSON = {}
    definitions: JSON = {}
    for document in documents:
        paths |= {path: _path(item) for path, item in document["paths"].items()}
        for name, schema in document["components"]["schemas"].items():
            if name not in definitions or _KIND in schema:  # elsewhere a kind is only a part of others
                definitions[name] = _schema(schema)
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": version},
        "paths": dict(sorted(paths.items())),
        "definitions": dict(sorted(definitions.items())),
    }


def _path(item: JSON) -> JSON:
    return {
        name: [_parameter(each) for each in content] if name == "parameters" else _operation(content)
        for name, content in item.items()
    }


def _operation(operation: JSON) -> JSON:
    body = operation.get("requestBody")
    parameters = [_parameter(each) for each in operation.get("parameters") or ()]
    consumed = ["*/*"]
    if body is not None:
        consumed = list(body["content"])
        schema = _schema(next(iter(body["content"].values()))["schema"]) or {"type": "object"}
        parameters.insert(0, {"name": "body", "in": "body", "required": True, "schema": schema})
    responses = {
        code: {
            "description": answer["description"],
            **({"schema": _schema(answer["content"][_JSON]["schema"])} if answer.get("content") else {}),
        }
        for code, answer in operation["responses"].items()
    }
    kept = {name: operation[name] for name in operation if name == "operationId" or name.startswith("x-")}
    return {
        "consumes": consumed,
        "produces": [_JSON],
        "schemes": ["https"],
        **kept,
        "parameters": parameters,
        "responses": responses,
    }


def _parameter(parameter: JSON) -> JSON:
    schema: JSON = parameter["schema"]
    return {name: value for name, value in parameter.items() if name != "schema"} | schema


def _schema(schema: Any) -> Any:
    """Return a schema without what version 2 cannot say; a reference stands alone."""
    if not isinstance(schema, Mapping):
        return schema
    refers = schema.get("allOf") or [schema]
    if len(refers) == 1 and "$ref" in refers[0]:
        return {"$ref": refers[0]["$ref"].replace(_V3, _V2)}
    found: JSON = {name: value for name, value in schema.items() if name not in _UNKNOWN and name != "allOf"}
    for name in _SCHEMAS:
        if name in found:
            found[name] = _schema(found[name])
    if "properties" in found:
        found["properties"] = {name: _schema(value) for name, value in found["properties"].items()}
    return found

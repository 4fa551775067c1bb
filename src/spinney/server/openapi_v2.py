"""OpenAPI v2, which clients ask for when version 3 does not know a kind: an empty document.

A client that finds no schema for a kind leaves the validation to the server; one that finds no document gives up. So
kubectl goes on to say that there is no such kind, as it does on other clusters.
"""

import msgspec

from spinney.server.exchange import Request, Response
from spinney.server.responding import reply

_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


def serve_openapi_v2(request: Request, version: str) -> Response:
    """Answer ``/openapi/v2`` in the form the client accepts."""
    title = "Kubernetes"
    if "protobuf" in request.headers.get("accept", ""):
        information = _text(1, title) + _text(2, version)
        return reply(_text(1, "2.0") + _field(2, information) + _field(8, b""), content_type=_PROTOBUF)
    document = {"swagger": "2.0", "info": {"title": title, "version": version}, "paths": {}, "definitions": {}}
    return reply(msgspec.json.encode(document))


def _text(number: int, text: str) -> bytes:
    return _field(number, text.encode())


def _field(number: int, content: bytes) -> bytes:
    """Encode a length-delimited protobuf field that is shorter than 128 bytes."""
    return bytes((number << 3 | 2, len(content))) + content

"""Reading request bodies: JSON, YAML where kubectl sends it, and protobuf where Go components do."""

from contextlib import suppress
from typing import Any

import msgspec
import yaml

from spinney.api import yaml_text
from spinney.api.builtin_fields import FieldTable
from spinney.api.builtin_fields.checking import WrongType, conform
from spinney.api.struct import JSON
from spinney.server.exchange.message import Request
from spinney.server.exchange.protobuf import NotBuiltIn, decode_object
from spinney.server.exchange.status import bad_request, unsupported_media_type
from spinney.server.exchange.wire import MalformedMessage

_JSON = "application/json"
_YAML = "application/yaml"
_PROTOBUF = "application/vnd.kubernetes.protobuf"


def media_type(request: Request) -> str:
    """Return the media type of the body, without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def is_json(request: Request) -> bool:
    """Tell whether the body is JSON, or a patch in JSON."""
    found = media_type(request)
    return found in {"", _JSON, "*/*"} or found.endswith("+json")


def is_protobuf(request: Request) -> bool:
    """Tell whether the body is protobuf."""
    return media_type(request) == _PROTOBUF


def read_object(request: Request, fields: FieldTable) -> Any:
    """Decode the body of a create or replace request."""
    found = media_type(request)
    if found in {"", _JSON, "*/*"}:
        return from_json(request.body)
    if found in {_YAML, "text/yaml", "application/x-yaml"}:
        return from_yaml(request.body)
    if found == _PROTOBUF:
        return from_protobuf(request.body, fields)
    raise unsupported_media_type((_JSON, _YAML, _PROTOBUF))


def read_options(request: Request, fields: FieldTable) -> JSON:
    """Decode the body of a delete request; an empty one has no options."""
    if not request.body.strip():
        return {}
    return held_to(read_object(request, fields), fields, "v1", "DeleteOptions")


def held_to(body: Any, fields: FieldTable, api_version: str, kind: str) -> JSON:
    """Return what is asked for, with the fields of its kind; raise a 400 for what is no such object."""
    if not isinstance(body, dict):
        raise bad_request(f"the body is not an object: expected a {kind}")
    held = {**body, "apiVersion": api_version, "kind": kind}
    try:
        conform(fields, held)
    except WrongType as error:
        raise bad_request(cannot_be_handled(api_version, kind, str(error))) from error
    return held


def cannot_be_handled(api_version: str, kind: str, why: str) -> str:
    """Return what is said of a body that is no object of its kind."""
    return f'{kind} in version "{api_version.rpartition("/")[2]}" cannot be handled as a {kind}: {why}'


def from_protobuf(body: bytes, fields: FieldTable) -> Any:
    """Decode protobuf; raise a 400 if it is none, and a 415 if it holds a kind that protobuf cannot carry."""
    try:
        return decode_object(fields, body)
    except NotBuiltIn as error:
        raise unsupported_media_type((_JSON, _YAML)) from error
    except MalformedMessage as error:
        raise bad_request(f"the body is not valid protobuf: {error}") from error
    except RecursionError as error:
        raise bad_request("the body is nested too deeply") from error


def from_json(body: bytes) -> Any:
    """Decode JSON; raise a 400 if it is none."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise bad_request(f"the body is not valid JSON: {error}") from error
    except RecursionError as error:
        raise bad_request("the body is nested too deeply") from error


def from_yaml(body: bytes) -> Any:
    """Decode YAML (or JSON, which is YAML); raise a 400 if it is neither."""
    try:
        if body.lstrip()[:1] == b"{":
            with suppress(msgspec.DecodeError, UnicodeDecodeError):  # flow-style YAML also begins with a brace
                return msgspec.json.decode(body)
        return yaml_text.load(body, aliases=False)
    except yaml.YAMLError as error:
        raise bad_request(f"the body is not acceptable YAML: {error}") from error
    except RecursionError as error:
        raise bad_request("the body is nested too deeply") from error

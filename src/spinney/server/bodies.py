"""Reading request bodies: JSON, YAML where kubectl sends it, and protobuf where Go components do."""

from typing import Any

import msgspec
import yaml

from spinney.api.builtin_fields import FieldTable
from spinney.server.exchange import Request
from spinney.server.fields.protobuf import UnknownKind, decode_object
from spinney.server.fields.wire import MalformedMessage
from spinney.server.status import bad_request, unsupported_media_type

_JSON = "application/json"
_YAML = "application/yaml"
_PROTOBUF = "application/vnd.kubernetes.protobuf"
_MAX_DEPTH = 256


def media_type(request: Request) -> str:
    """Return the media type of the body, without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def is_json(request: Request) -> bool:
    """Return whether the body is JSON, or a patch in JSON."""
    found = media_type(request)
    return found in {"", _JSON, "*/*"} or found.endswith("+json")


def is_protobuf(request: Request) -> bool:
    """Return whether the body is protobuf."""
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


def read_options(request: Request, fields: FieldTable) -> dict[str, Any]:
    """Decode the body of a delete request; an empty one has no options."""
    if not request.body.strip():
        return {}
    options = read_object(request, fields)
    if not isinstance(options, dict):
        raise bad_request("the body is not an object: expected DeleteOptions")
    return options


def from_protobuf(body: bytes, fields: FieldTable) -> Any:
    """Decode protobuf; raise a 400 if it is none, and a 415 if it holds a kind that protobuf cannot carry."""
    try:
        return decode_object(fields, body)
    except UnknownKind as error:
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
    if body.lstrip()[:1] == b"{":
        try:
            return msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            pass  # flow-style YAML also begins with a brace
        except RecursionError as error:
            raise bad_request("the body is nested too deeply") from error
    try:
        _check_yaml(body)
        return yaml.load(body, Loader=_YamlLoader)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, ValueError) as error:
        raise bad_request(f"the body is not valid YAML: {error}") from error


def _check_yaml(body: bytes) -> None:
    """Refuse aliases, with which a small body becomes a large object, and nesting that no object has."""
    depth = 0
    for event in yaml.parse(body, Loader=_SafeLoader):
        if isinstance(event, yaml.events.AliasEvent):
            raise bad_request("the body is not acceptable YAML: aliases are not accepted")
        if isinstance(event, yaml.events.CollectionStartEvent):
            depth += 1
            if depth > _MAX_DEPTH:
                raise bad_request(f"the body is not acceptable YAML: nested deeper than {_MAX_DEPTH}")
        elif isinstance(event, yaml.events.CollectionEndEvent):
            depth -= 1


_SafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _YamlLoader(_SafeLoader):  # type: ignore[misc, valid-type]
    """YAML in which a timestamp stays text, as in JSON."""


_YamlLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}

"""Fields that stand twice in a body. The last one counts; strict clients want to be told.

A decoder keeps one value per field, so a body in which none stands twice is as long as what it decodes to, but for
spaces and spelling. Only bodies that differ in length are read again, slowly, with an eye on repetitions.
"""

import json
from typing import Any

import msgspec
import yaml

from spinney.api import yaml_text
from spinney.server.exchange.bodies import is_json, is_protobuf
from spinney.server.exchange.message import Request


def repeated_fields(request: Request, decoded: Any) -> list[str]:
    """Return what is to be said about every field that stands twice, in the words of Kubernetes."""
    if is_protobuf(request):
        return []  # where the last one counts, too, and nobody is told
    if not is_json(request) and request.body.lstrip()[:1] != b"{":
        return _repeated_in_yaml(request.body)
    if len(msgspec.json.encode(decoded)) == len(request.body):
        return []
    found: list[str] = []
    _walk(json.loads(request.body, object_pairs_hook=_Pairs), "", found)
    return [f'duplicate field "{path}"' for path in found]


class _Pairs(list[tuple[str, Any]]):
    """The fields of an object as they stand in the body, each as often as it does."""


def _walk(value: Any, path: str, found: list[str]) -> None:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for name, child in value:
            where = f"{path}.{name}" if path else name
            if name in seen:
                found.append(where)
            seen.add(name)
            _walk(child, where, found)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _walk(item, f"{path}[{index}]", found)


def _repeated_in_yaml(body: bytes) -> list[str]:
    lines: list[str] = []
    root = yaml.compose(body, Loader=yaml_text.Loader)
    if root is not None:
        _walk_yaml(root, lines)
    return ["yaml: unmarshal errors:\n" + "\n".join(lines)] if lines else []


def _walk_yaml(node: yaml.Node, lines: list[str]) -> None:
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if key.value in seen:
                lines.append(f'  line {key.start_mark.line + 1}: key "{key.value}" already set in map')
            seen.add(key.value)
            _walk_yaml(value, lines)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _walk_yaml(item, lines)

"""The base of every API struct, and decoding and encoding them.

Structs are frozen and speak the API's camelCase. A field that may be absent defaults to ``None`` (or to an empty
tuple or mapping), never to the value the API would fill in: defaults are applied by :mod:`spinney.api.schema`, so what
a user wrote is what is written back.

API objects are trees, never graphs, so the structs stay out of the cyclic garbage collector (``gc=False``): a cache of
a hundred thousand pods adds nothing to a collection.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

JSON = dict[str, Any]
"""A JSON object carried as it came, such as a pod template: nothing in it is lost."""

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)


class Struct(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """Base of API structs. Subclasses repeat ``frozen=True, kw_only=True`` (``kw_only`` is not inherited)."""


def constant(value: str) -> Any:
    """Declare a field that decodes to ``value`` when absent and is always written, such as ``apiVersion``."""
    return msgspec.field(default_factory=lambda: value)


def counter() -> Any:
    """Declare a count that is 0 when absent and always written, so that a merge patch can set it back to 0."""
    return msgspec.field(default_factory=int)


def decode(kind: type[T], raw: bytes | str) -> T:
    """Decode JSON text into ``kind``; unknown fields are dropped."""
    return msgspec.json.decode(raw, type=kind)


def convert(kind: type[T], value: Any) -> T:
    """Convert plain JSON values (dicts, lists, scalars) into ``kind``; unknown fields are dropped."""
    return msgspec.convert(value, type=kind)


def to_json(value: Any) -> Any:
    """Convert a struct into plain JSON values: dicts, lists and scalars, shared with nobody."""
    return msgspec.json.decode(msgspec.json.encode(value))


def encode(value: Any) -> bytes:
    """Encode a struct, or plain JSON values, as JSON text."""
    return msgspec.json.encode(value)


def changed(found: S, **parts: Mapping[str, object]) -> S:
    """Return an object with fields of its parts changed, such as its metadata, its spec or its status."""
    return msgspec.structs.replace(
        found, **{part: msgspec.structs.replace(getattr(found, part), **fields) for part, fields in parts.items()}
    )


def fill(part: JSON, /, **defaults: Any) -> None:
    """Give a part of an object the fields that it lacks."""
    for name, value in defaults.items():
        part.setdefault(name, value)


def without_nulls(value: Any) -> Any:
    """Return plain JSON values without the fields that are null: for the API these are not written."""
    if isinstance(value, dict):
        return {name: without_nulls(part) for name, part in value.items() if part is not None}
    return [without_nulls(part) for part in value] if isinstance(value, list) else value


def objects(items: Any) -> list[JSON]:
    """Return the items of a JSON list as objects, an item that is none as an empty one, so that positions hold."""
    if not isinstance(items, list):
        return []
    return [item if isinstance(item, dict) else {} for item in items]

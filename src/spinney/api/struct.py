"""The base of every API struct, and decoding and encoding them.

Structs are frozen and speak the API's camelCase. A field that may be absent defaults to ``None`` (or to an empty
tuple or mapping), never to the value the API would fill in: defaults are applied by :mod:`spinney.api.schema`, so what
a user wrote is what is written back.
"""

from typing import Any, TypeVar

import msgspec

JSON = dict[str, Any]
"""A JSON object carried as it came, such as a pod template: nothing in it is lost."""

T = TypeVar("T")


class Struct(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Base of API structs. Subclasses repeat ``frozen=True, kw_only=True`` (``kw_only`` is not inherited)."""


def decode(kind: type[T], raw: bytes | str) -> T:
    """Decode JSON text into ``kind``; unknown fields are dropped."""
    return msgspec.json.decode(raw, type=kind)


def convert(kind: type[T], value: Any) -> T:
    """Convert plain JSON values (dicts, lists, scalars) into ``kind``; unknown fields are dropped."""
    return msgspec.convert(value, type=kind)


def to_json(value: Any) -> Any:
    """Convert a struct into plain JSON values."""
    return msgspec.to_builtins(value)


def encode(value: Any) -> bytes:
    """Encode a struct, or plain JSON values, as JSON text."""
    return msgspec.json.encode(value)

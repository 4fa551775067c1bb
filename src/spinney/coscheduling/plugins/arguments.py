"""Reading a plugin's arguments: strictly, into the plugin's own type."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from spinney.api.documents import nearest

T = TypeVar("T", bound=msgspec.Struct)


def read(kind: type[T], found: Mapping[str, Any]) -> T:
    """Return ``found`` as ``kind``; ``ValueError`` names the argument and what was expected."""
    known = [field.encode_name for field in msgspec.structs.fields(kind)]
    for name in found:
        if name not in known:
            raise ValueError(f"args.{name}: no such argument; {nearest(name, known)}")
    try:
        return msgspec.convert(dict(found), kind)
    except msgspec.ValidationError as error:
        raise ValueError(f"args: {error}") from error

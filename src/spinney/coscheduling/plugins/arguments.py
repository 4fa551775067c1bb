"""Reading a plugin's arguments: strictly, into the plugin's own type."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

import msgspec

T = TypeVar("T", bound=msgspec.Struct)


class NoArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of a plugin that takes none."""


def read(kind: type[T], found: Mapping[str, Any]) -> T:
    """Return ``found`` as ``kind``; ``ValueError`` names the argument and what was expected."""
    known = [field.encode_name for field in msgspec.structs.fields(kind)]
    for name in found:
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known) or 'none'}"
            raise ValueError(f"args.{name}: no such argument; {hint}")
    try:
        return msgspec.convert(dict(found), kind)
    except msgspec.ValidationError as error:
        raise ValueError(f"args: {error}") from error

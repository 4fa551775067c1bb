"""Objects to look at: what was decoded, with mappings that cannot be written to.

Objects are frozen but for the mappings in them, labels for instance, and everything that reads the cluster shares them.
What plugins are given is guarded, so that one that writes to it is told so, and changes it for nobody. It can be
encoded and copied all the same.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final, NoReturn, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import structs

T = TypeVar("T", bound=msgspec.Struct)


class GuardedMapping(dict[str, Any]):
    """A mapping that cannot be written to. It is a dictionary, as encoders ask for one; copies are ordinary ones."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("what the cluster says cannot be written to; make a copy of the mapping with dict(...)")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type, tuple[dict[str, Any]]]:
        return dict, (dict(self),)


_NOTHING: Final = GuardedMapping()


def guarded(found: T) -> T:
    """Return an object that is equal, and whose mappings cannot be written to."""
    return structs.replace(found, **{name: _guarded(getattr(found, name)) for name in _fields_to_guard(type(found))})


def _guarded(value: Any) -> Any:
    if isinstance(value, dict):
        return GuardedMapping(value) if value else _NOTHING
    if isinstance(value, msgspec.Struct):
        return guarded(value)
    if isinstance(value, tuple):
        return tuple(map(_guarded, value))
    return value


@cache
def _fields_to_guard(kind: type[msgspec.Struct]) -> Sequence[str]:
    """Return the fields that are, or lead to, mappings."""
    return [name for name, hint in get_type_hints(kind).items() if name in kind.__struct_fields__ and _leads_on(hint)]


def _leads_on(hint: Any) -> bool:
    origin = get_origin(hint)
    if origin is not None:
        return (isinstance(origin, type) and issubclass(origin, Mapping)) or any(map(_leads_on, get_args(hint)))
    return isinstance(hint, type) and issubclass(hint, msgspec.Struct) and bool(_fields_to_guard(hint))

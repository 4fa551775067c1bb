"""What a plugin takes: its arguments as a type of its own, and what the configuration gives it read into that type.

A plugin that declares such a type (``arguments_type``) has its arguments checked when the configuration is read, with
everything that is wrong said at once. Where arguments are text, as the session scheduler's always are, a field of the
type says what the text has to be: a number, a truth value, a duration such as ``4h30m``, one of a few words. A plugin
that declares nothing is given whatever there is.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from functools import cache
from typing import Any, Final, TypeVar

import msgspec
from msgspec import inspect

from spinney.api.documents import nearest
from spinney.api.durations import InvalidDuration, format_duration, parse_duration

T = TypeVar("T", bound=msgspec.Struct)


_CONTAINERS: Final = (inspect.CollectionType, inspect.TupleType, inspect.DictType, inspect.StructType)
"""What a field may be that is given as JSON, not as text."""


class NoArguments(msgspec.Struct, frozen=True):
    """The arguments of a plugin that takes none."""


class InvalidArguments(ValueError):
    """Arguments that a plugin cannot take; ``problems`` has the name of each and what is wrong with it."""

    def __init__(self, problems: Sequence[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"argument {name}: {message}" for name, message in problems))
        self.problems = problems


def read_arguments(kind: type[T], found: Mapping[str, Any]) -> T:
    """Return ``found`` as ``kind``; raises :class:`InvalidArguments`.

    ``kind.key_aliases``, where there is one, has other spellings of arguments and the field each stands for.
    """
    fields = _fields(kind)
    aliases: Mapping[str, str] = getattr(kind, "key_aliases", {})
    values: dict[str, Any] = {}
    problems: list[tuple[str, str]] = []
    for key, value in found.items():
        name = aliases.get(key, key)
        if name not in fields:
            problems.append((key, f"unknown argument; {nearest(key, list(fields))}"))
        elif fields[name].name in values:
            problems.append((key, f"is another spelling of {name!r}, which is given too"))
        else:
            try:
                values[fields[name].name] = _read(fields[name].type, value)
            except InvalidDuration as error:
                problems.append((key, str(error)))
            except ValueError:
                problems.append((key, f"found {value!r}, expected {_expected(fields[name].type)}"))
    given = {aliases.get(key, key) for key in found}
    problems += [(name, "is missing") for name, field in fields.items() if field.required and name not in given]
    if problems:
        raise InvalidArguments(problems)
    return kind(**values)


@cache
def _fields(kind: type[msgspec.Struct]) -> Mapping[str, msgspec.structs.FieldInfo]:
    """Return the fields of a type by what a configuration calls them; every session asks for those of its plugins."""
    return {field.encode_name: field for field in msgspec.structs.fields(kind)}


def no_texts(kind: type[msgspec.Struct]) -> Iterator[str]:
    """Return the arguments of a type that no text can be read as, each with what it is."""
    for name, field in _fields(kind).items():
        if not _can_be_text(inspect.type_info(field.type)):
            yield f"{name}: {field.type.__name__ if isinstance(field.type, type) else field.type}"


def _can_be_text(kind: inspect.Type) -> bool:
    if isinstance(kind, inspect.UnionType):
        return any(map(_can_be_text, kind.types))
    return not isinstance(kind, _CONTAINERS)


def written(arguments: msgspec.Struct) -> dict[str, str]:
    """Return arguments as a configuration would give them, defaults included; no text says ``None``."""
    found = {field.encode_name: getattr(arguments, field.name) for field in msgspec.structs.fields(arguments)}
    return {name: _written(value) for name, value in found.items() if value is not None}


def only_known(kind: type[msgspec.Struct] | None, found: Mapping[str, str]) -> dict[str, str]:
    """Return those arguments that ``kind`` has; all of them where nothing is declared."""
    if kind is None:
        return dict(found)
    known = {field.encode_name for field in msgspec.structs.fields(kind)} | set(getattr(kind, "key_aliases", {}))
    return {key: text for key, text in found.items() if key in known}


def _read(kind: Any, given: Any) -> Any:
    """Return what an argument stands for, if it is a text, or itself; ``ValueError`` if it is none of the kind."""
    if kind is timedelta:
        return parse_duration(str(given))
    value = msgspec.convert(given, kind, strict=not isinstance(given, str))
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(given)
    return value


def _written(value: object) -> str:
    match value:
        case timedelta():
            return format_duration(value)
        case float():
            return f"{value:g}"
        case bool():
            return str(value).lower()
        case _:
            return str(value)


def _expected(kind: Any) -> str:
    """Return what a text has to be to be read as ``kind``."""
    return _expected_of(inspect.type_info(kind))


def _expected_of(info: inspect.Type) -> str:
    match info:
        case inspect.LiteralType(values=words):
            return _either(words)
        case inspect.EnumType(cls=words):
            return _either([word.value for word in words])
        case inspect.UnionType(types=kinds):
            return _either([_expected_of(each) for each in kinds if not isinstance(each, inspect.NoneType)])
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType() as number:
            return f"a whole number{_bounds(number)}"
        case inspect.FloatType() as number:
            return f"a number{_bounds(number)}"
        case other:
            return f"a text of type {type(other).__name__.removesuffix('Type').lower()}"


def _bounds(number: inspect.IntType | inspect.FloatType) -> str:
    bounds = (("at least", number.ge), ("more than", number.gt), ("at most", number.le), ("less than", number.lt))
    said = [f"{word} {bound:g}" for word, bound in bounds if bound is not None]
    return f" of {' and '.join(said)}" if said else ""


def _either(words: Sequence[object]) -> str:
    *others, last = map(str, words)
    return f"{', '.join(others)} or {last}" if others else last

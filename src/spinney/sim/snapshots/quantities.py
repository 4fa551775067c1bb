"""Amounts in the objects of a file: which of them is no quantity, and in which field it stands.

An API server has seen to that in a cluster; a file may hold anything, and who computes with an amount later on knows
neither the object nor the file. Where a type has amounts is found out once.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec.inspect import (
    DictType,
    FloatType,
    IntType,
    ListType,
    Metadata,
    NoneType,
    StrType,
    StructType,
    Type,
    UnionType,
    VarTupleType,
)

from spinney.api.quantity import InvalidQuantity, Quantity, RawQuantity

_Check = Callable[[Any], str | None]
"""Returns the field, from here on, and what is wrong with it; ``None`` if all amounts are quantities."""
_QUANTITY: Final = {StrType, IntType, FloatType}


def wrong_quantity(found: msgspec.Struct) -> str | None:
    """Return the first amount of an object that is no quantity: its field and what was expected; ``None`` without."""
    check = _check_of(type(found))
    fault = check(found) if check is not None else None
    return fault.removeprefix(".") if fault is not None else None


@lru_cache
def _check_of(kind: type[msgspec.Struct]) -> _Check | None:
    return _check(msgspec.inspect.type_info(kind), ())


def _check(kind: Type, around: tuple[type, ...]) -> _Check | None:
    """Return how to look at a value of a type; ``None`` if it has no amounts. Types that hold themselves have none."""
    if isinstance(kind, Metadata):
        return _check(kind.type, around)
    if isinstance(kind, UnionType):
        kinds = [each for each in kind.types if not isinstance(each, NoneType)]
        if {type(each) for each in kinds} == _QUANTITY:
            return _amount
        return _check(kinds[0], around) if len(kinds) == 1 else None
    if isinstance(kind, StructType) and kind.cls not in around:
        parts = [
            (each.name, each.encode_name, check)
            for each in kind.fields
            if (check := _check(each.type, (*around, kind.cls))) is not None
        ]
        return _struct(parts) if parts else None
    if isinstance(kind, DictType):
        inner = _check(kind.value_type, around)
        return _mapping(inner) if inner is not None else None
    if isinstance(kind, ListType | VarTupleType):
        inner = _check(kind.item_type, around)
        return _sequence(inner) if inner is not None else None
    return None


@lru_cache(maxsize=65_536)
def _amount(value: RawQuantity | None) -> str | None:
    if value is None:
        return None
    try:
        Quantity.parse(value)
    except InvalidQuantity as error:
        return f": {error}"
    return None


def _struct(parts: list[tuple[str, str, _Check]]) -> _Check:
    def check(value: Any) -> str | None:
        for name, written, inner in parts:
            part = getattr(value, name, None)
            if part and (fault := inner(part)) is not None:
                return f".{written}{fault}"
        return None

    return check


def _mapping(inner: _Check) -> _Check:
    def check(value: Any) -> str | None:
        for name, part in value.items():
            if (fault := inner(part)) is not None:
                return f"[{name}]{fault}"
        return None

    return check


def _sequence(inner: _Check) -> _Check:
    def check(value: Any) -> str | None:
        for place, part in enumerate(value):
            if (fault := inner(part)) is not None:
                return f"[{place}]{fault}"
        return None

    return check

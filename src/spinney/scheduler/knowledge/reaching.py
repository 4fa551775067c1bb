"""What a function reads besides its arguments, found in its code without running it.

A function is *understood* if everything it reaches is plain data, or a function that is understood itself, and if it
writes nothing. Its answers then depend on its arguments and on that data alone. The clock, chance, files, the session,
objects with operators of their own, anything that is not recognised: a function that reaches them is not understood,
and has to be asked each time.
"""

import builtins
import dis
import logging
import re
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from functools import partial
from inspect import getattr_static
from itertools import islice
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    NoneType,
)
from typing import Any, Final

from spinney.api.guarding import GuardedMapping

_ATOMS: Final = frozenset(
    {NoneType, bool, int, float, complex, str, bytes, range, re.Pattern}
    | {date, datetime, timedelta, timezone, Decimal, type(...), type(NotImplemented)}
)
_MAPPINGS: Final = frozenset({dict, Counter, OrderedDict, MappingProxyType, GuardedMapping})
_SEQUENCES: Final = frozenset({tuple, list, set, frozenset, deque})
_LARGEST: Final = 4096
"""How much data a function may reach: it is compared each time before an answer is used again."""
_PURE: Final = frozenset(
    {abs, all, any, ascii, bin, bool, bytes, callable, chr, complex, dict, divmod, enumerate, filter, float, format}
    | {frozenset, hasattr, hash, hex, int, isinstance, issubclass, iter, len, list, map, max, min, next, object, oct}
    | {ord, pow, print, range, repr, reversed, round, set, slice, sorted, str, sum, tuple, type, zip}
)
_PURE_MODULES: Final = frozenset({"fnmatch", "math", "re", "string"})
_WRITES: Final = frozenset(
    {"STORE_ATTR", "STORE_SUBSCR", "STORE_GLOBAL", "STORE_NAME", "STORE_SLICE", "DELETE_ATTR", "DELETE_SUBSCR"}
    | {"DELETE_GLOBAL", "IMPORT_NAME", "LOAD_NAME", "LOAD_BUILD_CLASS", "LOAD_SUPER_ATTR"}
)
_CHANGING: Final = frozenset(
    {"add", "append", "appendleft", "clear", "difference_update", "discard", "extend", "extendleft", "insert"}
    | {"intersection_update", "move_to_end", "pop", "popitem", "popleft", "remove", "reverse", "rotate"}
    | {"setdefault", "sort", "subtract", "symmetric_difference_update", "update"}
)
_READ: Final = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_CUSTOM_ACCESS: Final = ("__getattr__", "__getattribute__")


class NotUnderstood(Exception):
    """The function reaches, or does, something whose effect on its answers is not known."""


State = tuple[object, ...]


class Reach:
    """The data that a function reads besides its arguments, wherever that is kept."""

    def __init__(self, bindings: Sequence[Callable[[], object]]) -> None:
        self._bindings = bindings

    def state(self) -> State | None:
        """Return a copy of the data as it is now, to compare; ``None`` if it is no longer plain data."""
        try:
            return tuple([_kept(binding()) for binding in self._bindings])
        except (NotUnderstood, AttributeError, NameError, ValueError):
            return None


def reach_of(fn: Callable[..., Any]) -> Reach | None:
    """Return what a function reads besides its arguments; ``None`` if it is not understood."""
    walk = _Walk()
    try:
        walk.function(fn)
    except (NotUnderstood, AttributeError, NameError, ValueError):
        return None
    return Reach(list(walk.bindings.values()))


def copy_of(value: object) -> object:
    """Return plain data in a form that later changes do not reach; raises :class:`NotUnderstood` for other things."""
    return value if type(value) in _ATOMS else _copied(value, iter(range(_LARGEST)))


def _kept(value: object) -> object:
    return value if isinstance(value, FunctionType | MethodType) else copy_of(value)


def _copied(value: object, budget: Iterator[int]) -> object:
    kind = type(value)
    if kind in _ATOMS or isinstance(value, Enum):
        return value
    if next(budget, None) is None or (kind not in _MAPPINGS and kind not in _SEQUENCES):
        raise NotUnderstood
    held: Any = value
    if len(held) > _LARGEST:
        raise NotUnderstood
    if kind in _MAPPINGS:
        # What can be a key does not change.
        if _ATOMS.issuperset(map(type, held.values())):
            return kind, dict(held)
        return kind, {key: _copied(each, budget) for key, each in held.items()}
    if kind is set or kind is frozenset:
        return kind, frozenset(held)
    return kind, list(held) if _ATOMS.issuperset(map(type, held)) else [_copied(each, budget) for each in held]


class _Walk:
    """One look through the code of a function and of all it calls. Mutable."""

    def __init__(self) -> None:
        self.bindings: dict[object, Callable[[], object]] = {}
        self._known: set[tuple[int, int]] = set()

    def function(self, fn: object) -> None:
        """Look through a function, a bound method or a partial call."""
        if isinstance(fn, partial):
            copy_of((fn.args, fn.keywords))
            self.bindings[id(fn)] = _constant((fn.args, fn.keywords))
            fn = fn.func
        if isinstance(fn, MethodType):
            self._body(fn.__func__, fn.__self__)
        elif isinstance(fn, FunctionType):
            self._body(fn)
        else:
            raise NotUnderstood

    def _body(self, fn: object, owner: object = None) -> None:
        if not isinstance(fn, FunctionType):
            raise NotUnderstood
        if (id(fn), id(owner)) in self._known:
            return
        self._known.add((id(fn), id(owner)))
        code = fn.__code__
        defaults = (fn.__defaults__, fn.__kwdefaults__)
        if defaults != (None, None):
            copy_of(defaults)
            self.bindings[id(fn)] = lambda: (fn.__defaults__, fn.__kwdefaults__)
        cells = dict(zip(code.co_freevars, fn.__closure__ or (), strict=True))
        own = {code.co_varnames[0]: owner} if owner is not None and code.co_argcount else {}
        self._code(code, fn.__globals__, cells, own, own)

    def _code(
        self,
        code: CodeType,
        names: Mapping[str, Any],
        cells: Mapping[str, CellType],
        fast: Mapping[str, object],
        own: Mapping[str, object],
    ) -> None:
        """Look at every instruction; ``own`` is the object that a method belongs to, ``fast`` where it is a local."""
        found = list(dis.get_instructions(code))
        # From 3.13 on, handing a cell to an inner function reads as loading a local; the inner code is looked at below.
        fast = {name: owner for name, owner in fast.items() if name not in code.co_cellvars}
        for place, each in enumerate(found):
            said = each.argval
            if each.opname in _WRITES or (each.opname in _READ and said in _CHANGING):
                raise NotUnderstood
            if each.opname == "LOAD_GLOBAL":
                self._follow(("global", id(names), said), _named(names, said), islice(found, place + 1, None))
            elif each.opname.endswith("_DEREF") and said in cells:
                if not each.opname.startswith("LOAD"):
                    raise NotUnderstood
                cell = cells[said]
                self._follow(
                    ("cell", id(cell)), partial(getattr, cell, "cell_contents"), islice(found, place + 1, None)
                )
            elif own and self._loads(each, fast, own):
                if not each.opname.startswith("LOAD") or isinstance(said, tuple):
                    raise NotUnderstood
                owner = own[said]
                self._follow(("own", id(owner)), _constant(owner), islice(found, place + 1, None))
        inner = {name: owner for name, owner in own.items() if name in code.co_cellvars or name in code.co_freevars}
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                within = {name: cell for name, cell in cells.items() if name in constant.co_freevars}
                self._code(constant, names, within, {}, inner)

    @staticmethod
    def _loads(each: dis.Instruction, fast: Mapping[str, object], own: Mapping[str, object]) -> bool:
        """Tell whether an instruction deals with the object that a method belongs to."""
        if each.opname.endswith("_DEREF"):
            return each.argval in own
        said = each.argval if isinstance(each.argval, tuple) else (each.argval,)
        return "_FAST" in each.opname and any(name in fast for name in said)

    def _follow(self, path: tuple[object, ...], get: Callable[[], Any], after: Iterator[dis.Instruction]) -> None:
        """Follow the attributes that are read of something until data, or a function, is reached."""
        value = get()
        while True:
            if self._is_harmless(value):
                return
            if isinstance(value, FunctionType | MethodType):
                self.bindings[path] = get
                self.function(value)
                return
            if _is_data(value):
                self.bindings[path] = get
                return
            following = next(after, None)
            if following is None or following.opname not in _READ:
                raise NotUnderstood
            name: str = following.argval
            if name in getattr(type(value), "fixed_names", ()):
                return
            if isinstance(value, ModuleType):
                if value.__name__ in _PURE_MODULES:
                    return
            elif isinstance(value, type):
                if not issubclass(value, Enum) and not _is_data(getattr_static(value, name)):
                    raise NotUnderstood
            elif self._is_behaviour(value, name):
                return
            path, get = (*path, name), _attribute(get, name)
            value = get()

    def _is_behaviour(self, value: object, name: str) -> bool:
        """Look through a method or property of an object; return ``False`` if the name is an attribute with a value."""
        kind = type(value)
        if any(getattr_static(kind, access, None) is not getattr(object, access, None) for access in _CUSTOM_ACCESS):
            raise NotUnderstood
        if name in getattr(value, "__dict__", ()):
            return False
        static = getattr_static(kind, name)
        if isinstance(static, FunctionType):
            self._body(static, value)
            return True
        if isinstance(static, property):
            self._body(static.fget, value)
            return True
        if isinstance(static, staticmethod):
            self.function(static.__func__)
            return True
        if isinstance(static, MemberDescriptorType) or not hasattr(type(static), "__get__"):
            return False
        raise NotUnderstood

    @staticmethod
    def _is_harmless(value: object) -> bool:
        """Tell whether something answers by its arguments alone, or does nothing that decisions depend on."""
        if isinstance(value, BuiltinFunctionType) or (isinstance(value, type) and value in _PURE):
            return value in _PURE or getattr(value, "__module__", None) in _PURE_MODULES
        if isinstance(value, type):
            plain = issubclass(value, Exception) and value.__init__ in _PLAIN_INITS
            return plain or value.__module__.startswith("spinney.scheduler.")
        return isinstance(value, logging.Logger) or type(value).__module__.startswith("structlog.")


_PLAIN_INITS: Final = frozenset(
    {kind.__init__ for kind in vars(builtins).values() if isinstance(kind, type) and issubclass(kind, BaseException)}
)


def _named(names: Mapping[str, Any], name: str) -> Callable[[], object]:
    def get() -> object:
        return names[name] if name in names else getattr(builtins, name)

    return get


def _constant(value: object) -> Callable[[], object]:
    return lambda: value


def _attribute(get: Callable[[], object], name: str) -> Callable[[], object]:
    return lambda: getattr(get(), name)


def _is_data(value: object) -> bool:
    try:
        copy_of(value)
    except NotUnderstood:
        return False
    return True

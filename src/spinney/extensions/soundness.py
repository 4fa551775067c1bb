"""What is wrong with a plugin or backend as it is written, found before it is asked: its name, and what is async.

A method that is async where it must not be answers with a coroutine, which is true and does nothing; one that is not
where it must be has done its work before anybody can wait for it. A method with ``yield`` in it does nothing, either.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from inspect import get_annotations, isasyncgenfunction, iscoroutinefunction, isgeneratorfunction, unwrap
from typing import Final, get_origin

from spinney.extensions.answers import shown

_LONGEST_NAME: Final = 100
_AWAITABLE: Final = re.compile(r"([\w.]+\.)?(Awaitable|Coroutine|Future|Task)\b")
"""An annotation that is kept as text."""


def name_faults(name: object) -> Iterator[str]:
    """Return what is wrong with a name, with what to write."""
    if not isinstance(name, str):
        yield f'its name is {shown(name)}, write a text such as "my-plugin"'
    elif not name.strip() or not name.isprintable():
        yield 'its name cannot be shown in messages, write one such as "my-plugin"'
    elif len(name) > _LONGEST_NAME:
        yield f"its name has {len(name)} characters, write one of at most {_LONGEST_NAME}"


def awaited_faults(kind: type, methods: Iterable[str]) -> Iterator[str]:
    """Return what is wrong with methods that are awaited, each with what to write."""
    for name in methods:
        method = getattr(kind, name)
        if not callable(method) or not _gives_awaitable(method):
            yield f"{name} is not awaitable, write `async def {name}`"


def _gives_awaitable(method: Callable[..., object]) -> bool:
    """Tell whether a function is async, says that it returns something to await, or passes calls on to an async one."""
    function = unwrap(method)
    functions = (method, function, type(function).__call__, *_closed_over(function))
    return any(map(iscoroutinefunction, functions)) or _is_awaitable(get_annotations(function).get("return"))


def _closed_over(function: object) -> Iterator[object]:
    for cell in getattr(function, "__closure__", None) or ():
        with suppress(ValueError):  # nothing is in it yet
            yield getattr(cell.cell_contents, "func", cell.cell_contents)


def _is_awaitable(said: object) -> bool:
    kind = get_origin(said) or said
    return issubclass(kind, Awaitable) if isinstance(kind, type) else _AWAITABLE.match(str(kind)) is not None


def called_faults(kind: type, methods: Iterable[str]) -> Iterator[str]:
    """Return what is wrong with methods that are called, each with what to write."""
    for name in methods:
        method = getattr(kind, name)
        if not callable(method):
            yield f"{name} is {shown(method)}, write `def {name}`"
        elif is_async(method):
            yield f"{name} is async, write `def {name}`"
        elif isgeneratorfunction(method):
            yield f"{name} has a `yield` in it, so nothing of it is run; write it without"


def is_async(method: Callable[..., object]) -> bool:
    """Tell whether a call of a function gives something to await, and does nothing by itself."""
    return iscoroutinefunction(method) or isasyncgenfunction(method)


def check_function(fn: object, *, may_yield: bool = False) -> None:
    """Refuse what cannot be asked, or would do nothing, while the line that registers it is still known."""
    if not callable(fn):
        raise TypeError(
            f"{shown(fn)} was registered, expected a function; give the function itself, without calling it"
        )
    asked = fn.func if isinstance(fn, partial) else fn
    name = getattr(asked, "__name__", type(asked).__name__)
    if is_async(fn) or is_async(type(fn).__call__):
        raise TypeError(f"{name} was registered, which is async, and nobody awaits it; write `def {name}`")
    if isgeneratorfunction(fn) and not may_yield:
        raise TypeError(f"{name} was registered, which has a `yield` in it, so nothing of it is run; write it without")

"""What went wrong in a plugin: which one, in which function at which line, and what came of it.

A scheduler fails closed and logs; in a cluster that is right. The author of a policy wants to see the fault
instead, so while :func:`watching` runs, log entries about a failed plugin are gathered and no longer logged.
"""

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from traceback import walk_tb
from types import CodeType, FunctionType, MethodType
from typing import Final

import structlog

from spinney.api.struct import Struct


class PluginFault(Struct, frozen=True, kw_only=True):
    """One way in which a plugin failed, however often it did."""

    plugin: str
    where: str
    """``FILE:LINE in FUNCTION``, as near to the fault as can be told."""
    error: str
    outcome: str
    """At which extension point it was asked, and what the scheduler made of it."""

    def __str__(self) -> str:
        return f"{self.where}: {self.error} ({self.outcome})"


class PluginFailed(RuntimeError):
    """Plugins failed while the scheduler asked them; ``faults`` says how."""

    def __init__(self, faults: list[PluginFault]) -> None:
        super().__init__("\n".join(f"plugin {fault.plugin}: {fault}" for fault in faults))
        self.faults = faults


class PolicyFaults:
    """The faults met so far, each once. Mutable."""

    def __init__(self) -> None:
        self._met: dict[PluginFault, None] = {}

    def __iter__(self) -> Iterator[PluginFault]:
        return iter(self._met)

    def __bool__(self) -> bool:
        return bool(self._met)

    def __str__(self) -> str:
        plugins = ", ".join(dict.fromkeys(fault.plugin for fault in self))
        return "\n".join(
            [f"plugin {plugins} failed, so what is shown is not what you meant:", *(f"  {each}" for each in self)]
        )

    def add(self, plugin: str, error: BaseException, outcome: str, function: str) -> None:
        """Note a fault; ``function`` names what was asked, for a fault that shows itself after the answer."""
        said = f"{type(error).__name__}: {error}{_meant(error)}"
        where = place_of(error) or f"in {function}"
        self._met[PluginFault(plugin=plugin, where=where, error=said, outcome=outcome)] = None

    def _gather(
        self, _logger: structlog.typing.WrappedLogger, _method: str, event: structlog.typing.EventDict
    ) -> structlog.typing.EventDict:
        error = sys.exc_info()[1]
        if "plugin" not in event or not event.get("exc_info") or error is None:
            return event
        outcome = f"at {event.get('hook') or event.get('point')}: {str(event['event']).removeprefix('plugin ')}"
        self.add(str(event["plugin"]), error, outcome, str(event.get("function") or event.get("point")))
        raise structlog.DropEvent


@contextmanager
def watching(so_far: PolicyFaults | None = None) -> Iterator[PolicyFaults]:
    """Gather the faults of plugins while the block runs, beside those met so far, instead of logging them."""
    faults = so_far if so_far is not None else PolicyFaults()
    if not structlog.is_configured():
        structlog.configure()
    processors = structlog.get_config()["processors"]
    processors.insert(0, faults._gather)  # noqa: SLF001 - the list is what loggers made before look into
    try:
        yield faults
    finally:
        processors.remove(faults._gather)  # noqa: SLF001


def place_of(error: BaseException) -> str:
    """Return where a plugin's function failed: its last line, or that of a module beside it, or what was asked.

    What it called in a library is the library's. Nothing is returned where the error does not lead to a plugin.
    """
    frames = list(walk_tb(error.__traceback__))
    own = [(frame.f_code, line) for frame, line in frames if not _is_library(frame.f_globals.get("__name__"))]
    if own:
        home = own[0][0].co_filename
        code, line = next(each for each in reversed(own) if not _is_installed(each[0]) or _is_beside(each[0], home))
        return f"{_shown(code.co_filename)}:{line} in {code.co_qualname}"
    for frame, _ in reversed(frames):
        for asked in frame.f_locals.values():
            found = _function_of(getattr(asked, "fn", asked))
            if found is not None and not _is_library(found.__module__):
                code = found.__code__
                return f"{_shown(code.co_filename)}:{code.co_firstlineno} in {code.co_qualname}"
    return ""


def _function_of(asked: object) -> FunctionType | None:
    found = inspect.unwrap(asked) if callable(asked) else asked
    if isinstance(found, partial):
        return _function_of(found.func)
    if callable(found) and not isinstance(found, FunctionType | MethodType | type):
        found = type(found).__call__
    found = found.__func__ if isinstance(found, MethodType) else found
    return found if isinstance(found, FunctionType) else None


def _is_library(module: object) -> bool:
    """Tell whether a module is Python's, ours, or one that we compute with."""
    return str(module).partition(".")[0] in _LIBRARIES


def _is_installed(code: CodeType) -> bool:
    return not _INSTALLED.isdisjoint(Path(code.co_filename).parts)


def _is_beside(code: CodeType, home: str) -> bool:
    return Path(code.co_filename).parent == Path(home).parent


def _shown(filename: str) -> str:
    path = Path(filename)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else filename


def _meant(error: BaseException) -> str:
    """Return a hint at the attribute that was probably meant."""
    if not isinstance(error, AttributeError) or error.name is None or error.obj is None:
        return ""
    near = get_close_matches(error.name, [name for name in dir(error.obj) if not name.startswith("_")], 1)
    return f"; did you mean {near[0]}?" if near else ""


_LIBRARIES: Final = sys.stdlib_module_names | {"spinney", "numpy"}
_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})

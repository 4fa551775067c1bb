"""What went wrong in a plugin: which one, in which function at which line, and what came of it.

A scheduler fails closed and logs; in a cluster that is right. The author of a policy wants to see the fault
instead, so while :func:`watching` runs, log entries about a failed plugin are gathered and no longer logged.
"""

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any

import structlog

from spinney.api.struct import Struct


class PluginFault(Struct, frozen=True, kw_only=True):
    """One way in which a plugin failed, however often it did."""

    plugin: str
    where: str
    """``FILE:LINE in FUNCTION``, as near to the fault as can be told."""
    error: str
    outcome: str
    """What the scheduler made of it."""

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
        outcome = str(event["event"]).removeprefix("plugin ")
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
    """Return where a plugin's function failed: the last line outside this package, or the function that was asked.

    Nothing is returned where the error does not lead to either.
    """
    frames: list[tuple[CodeType, int, dict[str, Any]]] = []
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        frames.append((trace.tb_frame.f_code, trace.tb_lineno, trace.tb_frame.f_locals))
        trace = trace.tb_next
    for code, line, _ in reversed(frames):
        if not _is_ours(code):
            return f"{_shown(code.co_filename)}:{line} in {code.co_qualname}"
    for _, _, names in reversed(frames):
        for asked in names.values():
            found = _code_of(getattr(asked, "fn", asked))
            if found is not None and not _is_ours(found):
                return f"{_shown(found.co_filename)}:{found.co_firstlineno} in {found.co_qualname}"
    return ""


def _code_of(asked: object) -> CodeType | None:
    code = getattr(inspect.unwrap(asked) if callable(asked) else asked, "__code__", None)
    return code if isinstance(code, CodeType) else None


def _is_ours(code: CodeType) -> bool:
    path = Path(code.co_filename)
    return _PACKAGE in path.parents or any(part in ("site-packages", "lib") for part in path.parts)


def _shown(filename: str) -> str:
    path = Path(filename)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else filename


def _meant(error: BaseException) -> str:
    """Return a hint at the attribute that was probably meant."""
    if not isinstance(error, AttributeError) or error.name is None or error.obj is None:
        return ""
    near = get_close_matches(error.name, [name for name in dir(error.obj) if not name.startswith("_")], 1)
    return f"; did you mean {near[0]}?" if near else ""


_PACKAGE = Path(__file__).resolve().parents[2]

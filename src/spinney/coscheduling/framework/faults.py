"""What plugins of a profile get wrong: they raise, or answer with something that is no answer.

Both go the same way. The caller gets :class:`FrameworkPluginFailed`, which names plugin, extension point and
fault; the first failure of a plugin at a point is logged with its traceback, and all are counted. A plugin that takes
long holds up every pod: that is logged and counted as well.
"""

import math
from collections.abc import Awaitable, Callable
from dataclasses import replace
from numbers import Real
from time import monotonic
from typing import Any, Final, TypeVar, cast

import numpy as np
import structlog
from msgspec import structs

from spinney.cluster.filters import Refusal
from spinney.cluster.scores import Scores
from spinney.cluster.table import Mask, NodeTable
from spinney.coscheduling.framework.status import SUCCESS, Code, FrameworkPluginFailed, Status
from spinney.extensions.answers import InvalidAnswer, fault_of, instance_of, shown
from spinney.runtime.faults import printable, raised, raised_later

log = structlog.get_logger()

T = TypeVar("T")
SLOW_SECONDS: Final = 1.0
"""After which an answer in a scheduling cycle counts as slow: all else waits for it."""


class Faults:
    """Asks plugins and keeps what they got wrong. Mutable.

    ``count`` and ``count_slow`` are told plugin and extension point of each fault and of each slow answer.
    """

    def __init__(self) -> None:
        self.count: Callable[[str, str], None] = lambda _plugin, _point: None
        self.count_slow: Callable[[str, str], None] = lambda _plugin, _point: None
        self.monotonic: Callable[[], float] = monotonic
        self._seen: set[tuple[str, str]] = set()
        self._slow: set[tuple[str, str]] = set()

    def ask(self, plugin: str, point: str, call: Callable[[], Any], read: Callable[[Any], T]) -> T:
        """Return what a plugin answers, read by ``read``; raises :class:`FrameworkPluginFailed`."""
        started = self.monotonic()
        try:
            return read(call())
        except raised() as error:
            raise self.note(plugin, point, error) from error
        finally:
            seconds = self.monotonic() - started
            if seconds >= SLOW_SECONDS:
                self._took_long(plugin, point, seconds)

    async def ask_later(
        self, plugin: str, point: str, call: Callable[[], Awaitable[Any]], read: Callable[[Any], T]
    ) -> T:
        """Return what a plugin answers in its own time; raises :class:`FrameworkPluginFailed`."""
        try:
            return read(await call())
        except raised_later() as error:
            raise self.note(plugin, point, error) from error

    def _took_long(self, plugin: str, point: str, seconds: float) -> None:
        if (plugin, point) not in self._slow:
            self._slow.add((plugin, point))
            log.warning("plugin is slow, and all else waits for it", plugin=plugin, point=point, seconds=seconds)
        self.count_slow(plugin, point)

    def note(self, plugin: str, point: str, error: BaseException) -> FrameworkPluginFailed:
        """Log and count an error while it is being handled; return what to tell about it."""
        if (plugin, point) not in self._seen:
            self._seen.add((plugin, point))
            log.exception("plugin failed", plugin=plugin, point=point)
        self.count(plugin, point)
        return FrameworkPluginFailed(plugin, point, fault_of(error))


def nothing(answer: object) -> None:
    """Read an answer that means nothing."""


_a_status: Final[Callable[[Any], Status]] = instance_of(Status, "a Status")


def a_status(answer: Any) -> Status:
    """Return a status; whatever is in it can be told."""
    found = _a_status(answer)
    if found is SUCCESS:
        return found
    code, reasons, waits = cast("tuple[object, object, object]", (found.code, found.reasons, found.waits))
    if not isinstance(code, Code):
        raise InvalidAnswer(f"a Status whose code is {shown(code)}", "a Code; write Status.unschedulable(...)")
    if type(reasons) is tuple and all(map(_is_plain, (*reasons, waits))):  # most are, and filters may give many
        return found
    if not isinstance(reasons, tuple | list) or not all(isinstance(each, str) for each in reasons):
        raise InvalidAnswer(f"a Status whose reasons are {shown(reasons)}", "texts, as in Status.unschedulable(...)")
    if not isinstance(waits, str):
        raise InvalidAnswer(f"a Status whose waits is {shown(waits)}", "a text")
    return replace(found, reasons=tuple(map(printable, reasons)), waits=printable(waits))


def _is_plain(text: object) -> bool:
    """Tell whether a text can be told and encoded as it is; no encoder knows the texts of numpy."""
    return type(text) is str and text.isascii()


def a_mask(answer: Any, table: NodeTable) -> Mask:
    """Return one truth value per node; one for all of them is none."""
    expected = "one truth value per row of the node table"
    if not isinstance(answer, np.ndarray) or answer.dtype != np.bool_:
        raise InvalidAnswer(shown(answer), expected)
    if answer.shape != table.alive.shape:
        raise InvalidAnswer(f"truth values of shape {answer.shape}", f"{expected}, {table.alive.shape}")
    return answer


def a_truth(answer: Any) -> bool:
    """Return a truth value."""
    if not isinstance(answer, bool | np.bool_):
        raise InvalidAnswer(shown(answer), "True or False")
    return bool(answer)


def a_permission(answer: Any) -> tuple[Status, float]:
    """Tell whether a pod may be bound, and how long it may wait for that."""
    expected = "a Status and the seconds to wait at most"
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise InvalidAnswer(shown(answer), expected)
    status, seconds = answer
    if not isinstance(status, Status) or not isinstance(seconds, Real) or not math.isfinite(seconds):
        raise InvalidAnswer(shown(answer), expected)
    return a_status(status), max(0.0, float(seconds))


def refusals(answer: Any, table: NodeTable) -> tuple[Refusal, ...]:
    """Return refusals, each with one truth value per node."""
    expected = "refusals, each with one truth value per row of the node table"
    found = tuple(answer)
    for each in found:
        if not isinstance(each, Refusal):
            raise InvalidAnswer(shown(each), expected)
        reason: object = each.reason
        if not isinstance(reason, str):
            raise InvalidAnswer(f"a Refusal whose reason is {shown(reason)}", "a text")
        for mask in (each.nodes, each.unresolvable):
            a_mask(mask, table)
    return tuple([structs.replace(each, reason=printable(each.reason)) for each in found])


def scores(answer: Any, table: NodeTable) -> Scores:
    """Return a whole number from 0 to 100 per row; fractions are rounded."""
    expected = "one number per row of the node table"
    found = np.asarray(answer)
    if found.dtype.kind not in "fiub" or found.shape not in {(), table.alive.shape}:
        raise InvalidAnswer(shown(answer), expected)
    if not np.isfinite(found).all():
        raise InvalidAnswer(f"{found[~np.isfinite(found)].flat[0]}", "finite numbers")
    return np.broadcast_to(np.clip(np.rint(found), 0, 100).astype(np.int64), table.alive.shape)

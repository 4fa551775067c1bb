"""What plugins of a profile get wrong: they raise, or answer with something that is no answer.

Both go the same way. The caller gets :class:`FrameworkPluginFailed`, which names plugin, extension point and
fault; the first failure of a plugin at a point is logged with its traceback, and all are counted. A plugin that takes
long holds up every pod: that is logged and counted as well.
"""

import math
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any, Final, TypeVar

import numpy as np
import structlog

from spinney.cluster.filters import Refusal
from spinney.cluster.scores import Scores
from spinney.cluster.table import NodeTable
from spinney.coscheduling.framework.status import FrameworkPluginFailed, Status

log = structlog.get_logger()

T = TypeVar("T")
_SHOWN = 60
SLOW_SECONDS: Final = 1.0
"""After which an answer in a scheduling cycle counts as slow: all else waits for it."""


class InvalidPluginAnswer(TypeError):
    """A plugin answered with something that is no answer."""

    def __init__(self, found: object, expected: str) -> None:
        text = repr(found)
        shown = text if len(text) <= _SHOWN else type(found).__name__
        super().__init__(f"returned {shown}, expected {expected}")


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
        except Exception as error:
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
        except Exception as error:
            raise self.note(plugin, point, error) from error

    def _took_long(self, plugin: str, point: str, seconds: float) -> None:
        if (plugin, point) not in self._slow:
            self._slow.add((plugin, point))
            log.warning("plugin is slow, and all else waits for it", plugin=plugin, point=point, seconds=seconds)
        self.count_slow(plugin, point)

    def note(self, plugin: str, point: str, error: Exception) -> FrameworkPluginFailed:
        """Log and count an error while it is being handled; return what to tell about it."""
        fault = str(error) if isinstance(error, InvalidPluginAnswer) else f"raised {type(error).__name__}: {error}"
        if (plugin, point) not in self._seen:
            self._seen.add((plugin, point))
            log.exception("plugin failed", plugin=plugin, point=point)
        self.count(plugin, point)
        return FrameworkPluginFailed(plugin, point, fault)


def nothing(answer: object) -> None:
    """Read an answer that means nothing."""


def a_status(answer: Any) -> Status:
    """Return a status."""
    if not isinstance(answer, Status):
        raise InvalidPluginAnswer(answer, "a Status")
    return answer


def a_truth(answer: Any) -> bool:
    """Return a truth value."""
    if not isinstance(answer, bool | np.bool_):
        raise InvalidPluginAnswer(answer, "True or False")
    return bool(answer)


def a_permission(answer: Any) -> tuple[Status, float]:
    """Tell whether a pod may be bound, and how long it may wait for that."""
    expected = "a Status and the seconds to wait at most"
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise InvalidPluginAnswer(answer, expected)
    status, seconds = answer
    if not isinstance(status, Status) or not isinstance(seconds, int | float) or not math.isfinite(seconds):
        raise InvalidPluginAnswer(answer, expected)
    return status, max(0.0, float(seconds))


def refusals(answer: Any, table: NodeTable) -> tuple[Refusal, ...]:
    """Return refusals, each with one truth value per node."""
    expected = "refusals, each with one truth value per row of the node table"
    found = tuple(answer)
    for each in found:
        if not isinstance(each, Refusal):
            raise InvalidPluginAnswer(each, expected)
        for mask in (each.nodes, each.unresolvable):
            if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != table.alive.shape:
                raise InvalidPluginAnswer(mask, expected)
    return found


def scores(answer: Any, table: NodeTable) -> Scores:
    """Return a whole number from 0 to 100 per row; fractions are rounded."""
    expected = "one number per row of the node table"
    found = np.asarray(answer)
    if found.dtype.kind not in "fiub" or found.shape not in {(), table.alive.shape}:
        raise InvalidPluginAnswer(answer, expected)
    if not np.isfinite(found).all():
        raise InvalidPluginAnswer(float(found[~np.isfinite(found)].flat[0]), "finite numbers")
    return np.broadcast_to(np.clip(np.rint(found), 0, 100).astype(np.int64), table.alive.shape)

"""Where a session's time goes: seconds by plugin and extension point."""

from collections.abc import Callable
from types import TracebackType


class Timings:
    """Accumulated seconds and calls by plugin and hook. Mutable."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self.monotonic = monotonic
        self.seconds: dict[tuple[str, str], float] = {}
        self.calls: dict[tuple[str, str], int] = {}
        self.current: tuple[str, str] | None = None
        """What is being measured now: where a cycle that hangs is stuck."""

    def measure(self, plugin: str, hook: str) -> "Span":
        """Add the time the block takes to a plugin's hook."""
        return Span(self, (plugin, hook))


class Span:
    """One measurement, as a context manager; a class of its own because thousands are made per cycle."""

    __slots__ = ("_key", "_outer", "_start", "_timings")

    def __init__(self, timings: Timings, key: tuple[str, str]) -> None:
        self._timings = timings
        self._key = key

    def __enter__(self) -> None:
        timings = self._timings
        self._outer = timings.current
        timings.current = self._key
        self._start = timings.monotonic()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        timings, key = self._timings, self._key
        timings.seconds[key] = timings.seconds.get(key, 0.0) + timings.monotonic() - self._start
        timings.calls[key] = timings.calls.get(key, 0) + 1
        timings.current = self._outer

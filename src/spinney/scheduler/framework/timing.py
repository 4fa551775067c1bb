"""Where a session's time goes: seconds by plugin and extension point."""

from collections.abc import Callable
from types import TracebackType

Key = tuple[str, str]
"""Plugin and extension point."""


class Timings:
    """Accumulated seconds by plugin and hook. Mutable."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self.monotonic = monotonic
        self._spans: dict[Key, Span] = {}
        self.current: Key | None = None
        """What is being measured now: where a cycle that hangs is stuck."""

    def measure(self, plugin: str, hook: str) -> "Span":
        """Add the time the block takes to a plugin's hook."""
        key = (plugin, hook)
        try:
            return self._spans[key]
        except KeyError:
            span = self._spans[key] = Span(self, key)
            return span

    @property
    def seconds(self) -> dict[Key, float]:
        """Return the seconds that each hook took."""
        return {key: span.seconds for key, span in self._spans.items()}


class Span:
    """The measurements of one hook, as a context manager that is entered again and again. Mutable."""

    __slots__ = ("_entered", "_key", "_timings", "seconds")

    def __init__(self, timings: Timings, key: Key) -> None:
        self._timings = timings
        self._key = key
        self._entered: list[tuple[float, Key | None]] = []
        """When each block that is under way began, one inside the other, and what was measured before it."""
        self.seconds = 0.0

    def __enter__(self) -> None:
        timings = self._timings
        self._entered.append((timings.monotonic(), timings.current))
        timings.current = self._key

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        timings = self._timings
        began, timings.current = self._entered.pop()
        self.seconds += timings.monotonic() - began

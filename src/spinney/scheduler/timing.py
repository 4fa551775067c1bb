"""Where a session's time goes: seconds by plugin and extension point."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Timings:
    """Accumulated seconds and calls by plugin and hook. Mutable."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self.seconds: dict[tuple[str, str], float] = {}
        self.calls: dict[tuple[str, str], int] = {}
        self.current: tuple[str, str] | None = None
        """What is being measured now: where a cycle that hangs is stuck."""

    @contextmanager
    def measure(self, plugin: str, hook: str) -> Iterator[None]:
        """Add the time the block takes to a plugin's hook."""
        key, outer = (plugin, hook), self.current
        self.current = key
        start = self._monotonic()
        try:
            yield
        finally:
            self.current = outer
            self.seconds[key] = self.seconds.get(key, 0.0) + self._monotonic() - start
            self.calls[key] = self.calls.get(key, 0) + 1

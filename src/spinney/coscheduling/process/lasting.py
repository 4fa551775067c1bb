"""What is told only if it lasts: a gang that is being created is incomplete, and most waits are over soon."""

import asyncio
from collections.abc import Callable, Hashable
from typing import Final, TypeVar

T = TypeVar("T", bound=Hashable)

LASTING_SECONDS: Final = 5.0


class Lasting:
    """Looks at things again after five seconds, at each in each way once at a time. Mutable."""

    def __init__(self) -> None:
        self._timers: dict[tuple[Hashable, Hashable], asyncio.TimerHandle] = {}

    def watch(self, look: Callable[[T], None], about: T) -> None:
        """Call ``look`` with ``about`` later, unless that is to happen anyway."""
        if (look, about) not in self._timers:
            loop = asyncio.get_running_loop()
            self._timers[look, about] = loop.call_later(LASTING_SECONDS, self._due, look, about)

    def clear(self) -> None:
        """Look at nothing any more."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _due(self, look: Callable[[T], None], about: T) -> None:
        del self._timers[look, about]
        look(about)

"""Clocks: what time it is, and waiting for it to pass.

Waiting always goes through the running event loop, so that on a :class:`~spinney.runtime.virtual.VirtualTimeLoop`
every sleep, timeout and timer of the process shares one time line.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from datetime import UTC, datetime, timedelta


class Clock(ABC):
    """Wall time for timestamps, monotonic time for durations."""

    @abstractmethod
    def now(self) -> datetime:
        """Return the current wall time, in UTC."""

    @abstractmethod
    def monotonic(self) -> float:
        """Return seconds that never go back; only differences mean something."""

    async def sleep(self, seconds: float) -> None:
        """Wait for ``seconds`` of this clock."""
        await asyncio.sleep(seconds)


class SystemClock(Clock):
    """The machine's own clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    # Not a method around it: a scheduling cycle reads it tens of times per gang.
    monotonic = staticmethod(time.monotonic)


class VirtualClock(Clock):
    """The time of the running event loop, counted from a fixed epoch.

    Meant for a :class:`~spinney.runtime.virtual.VirtualTimeLoop`, where time jumps to the next timer.
    """

    def __init__(self, epoch: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._epoch = epoch

    def now(self) -> datetime:
        return self._epoch + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

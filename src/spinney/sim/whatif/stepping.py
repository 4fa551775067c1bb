"""A clock for simulations: time passes only when it is told to."""

from datetime import UTC, datetime
from typing import Final

from spinney.runtime import Clock

EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)


class SteppedClock(Clock):
    """A clock that stands still until it is moved. Mutable."""

    def __init__(self, start: datetime = EPOCH) -> None:
        self._now = start
        self._seconds = (start - EPOCH).total_seconds()

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._seconds

    def move_to(self, moment: datetime) -> None:
        """Let time pass until ``moment``."""
        if moment > self._now:
            self._now = moment
            self._seconds = (moment - EPOCH).total_seconds()

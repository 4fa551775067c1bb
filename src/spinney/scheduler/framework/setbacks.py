"""Gangs that are left alone for a while because looking at them failed.

What raises while a gang is ordered, placed, helped, explained or committed would raise again a moment later. So the
gang rests, longer each time, while every other gang is decided; its conditions and ``spinney why`` say the error.
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final

import msgspec

from spinney.gangs.tree import GangKey
from spinney.kube.retrying import exponential
from spinney.reporting.pods import SCHEDULER_ERROR
from spinney.scheduler.framework.results import FitError

FIRST_SECONDS: Final = 1.0
LONGEST_SECONDS: Final = 300.0


class Setback(msgspec.Struct, frozen=True):
    """Why a gang is left alone, from when until when, and how often in a row that was so."""

    said: str
    since: datetime
    until: datetime
    times: int

    def is_over(self, now: datetime) -> bool:
        """Tell whether the gang has rested. A clock that was set back ends it, else it would last so much longer."""
        return not self.since <= now < self.until

    @property
    def error(self) -> FitError:
        """Return what to tell about it."""
        often = f" for the {self.times} time in a row" if self.times > 1 else ""
        return FitError(SCHEDULER_ERROR, f"{self.said}{often}; it is tried again later, other jobs are not affected")


class Setbacks:
    """The setbacks of one scheduler. Mutable; passed from one session to the next."""

    def __init__(self) -> None:
        self._known: dict[GangKey, Setback] = {}
        self._fresh: set[GangKey] = set()

    def add(self, gang: GangKey, said: str, now: datetime) -> Setback:
        """Set a gang back."""
        known = self._known.get(gang)
        times = 1 if known is None else known.times + (gang not in self._fresh)
        rest = exponential(times - 1, first=FIRST_SECONDS, longest=LONGEST_SECONDS)
        setback = self._known[gang] = Setback(said, now, now + timedelta(seconds=rest), times)
        self._fresh.add(gang)
        return setback

    def of(self, gang: GangKey, now: datetime) -> Setback | None:
        """Return the setback a gang still rests after."""
        known = self._known.get(gang)
        return known if known is not None and (gang in self._fresh or not known.is_over(now)) else None

    def end(self, gangs: Collection[GangKey], now: datetime) -> None:
        """End a cycle: gangs that are gone, and those that were looked at without an error, are forgotten."""
        self._known = {
            gang: setback
            for gang, setback in self._known.items()
            if gang in gangs and (gang in self._fresh or not setback.is_over(now))
        }
        self._fresh.clear()

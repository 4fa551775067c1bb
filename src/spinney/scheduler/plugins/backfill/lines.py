"""Jobs that are alike and wait one behind the other: what all of them save together if some places are there now.

Not only the first of them starts earlier then: each moves up, and when the first has ended, the next has its place.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Final, NamedTuple

from spinney.scheduler.plugins.backfill.slots import Slots

LONGEST: Final = 400
"""Of a longer line no more are looked at: those behind would save as well."""


class Gain(NamedTuple):
    """What so many jobs of a line save together, in seconds, and after how many the places are free behind them all."""

    jobs: int
    saved: float
    back: float


class WaitingLine:
    """Jobs that ask for the same, in their order, of which it is known how long they run. A cache of what they gain.

    ``room_for`` tells in how many seconds there is room for so many of them at once; ``None``: nobody knows.
    """

    def __init__(self, lengths: Sequence[float], room_for: Callable[[int], float | None]) -> None:
        self._lengths = lengths
        self._room_for = cache(room_for)
        self._starts = self._starts_with(Slots(self._room_for))
        self._gains: dict[tuple[int, float], Gain] = {}

    def gain(self, places: int, until: float) -> Gain:
        """Return what so many places are worth now that would be free after ``until`` seconds only.

        Where nobody knows when the first would start otherwise, it is worth everything.
        """
        if self._starts[0] is None:
            return Gain(1, math.inf, 0.0)
        lent_for = 2.0 ** math.floor(math.log2(max(until, 1.0)))  # about as long is alike: most are found only once
        known = self._gains.get((places, lent_for))
        if known is None:
            known = self._gains[places, lent_for] = self._find_gain(places, lent_for)
        return known

    def _find_gain(self, places: int, until: float) -> Gain:
        slots = Slots(self._room_for, lent=places, until=until)
        pairs = zip(self._starts, self._starts_with(slots), strict=True)
        saved = math.fsum(was - start for was, start in pairs if was is not None and start is not None)
        free = [slots.next(math.inf) for _ in range(places)]
        return Gain(len(self._lengths), saved, max(math.inf if each is None else each for each in free))

    def _starts_with(self, slots: Slots) -> list[float | None]:
        return [slots.next(length) for length in self._lengths]

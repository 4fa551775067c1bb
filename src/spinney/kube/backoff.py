"""Exponential back-off with jitter, drawn from the runtime's randomness."""

import random

_FIRST = 0.5
_LONGEST = 30.0
_JITTER = 0.5


class Backoff:
    """Waits that double up to a limit, each stretched by a random part so that many processes do not come back at once.

    Mutable: it remembers how often it was asked since the last reset.
    """

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._failures = 0

    def next(self) -> float:
        """Return how long to wait now, and wait longer next time."""
        delay = exponential(self._failures, first=_FIRST, longest=_LONGEST)
        self._failures += 1
        return delay * (1 + _JITTER * self._chance.random())

    def reset(self) -> None:
        """Start again from the first wait."""
        self._failures = 0


def exponential(failures: int, *, first: float, longest: float) -> float:
    """Return ``first`` doubled once per failure, at most ``longest``."""
    return min(longest, first * float(1 << min(failures, 62)))

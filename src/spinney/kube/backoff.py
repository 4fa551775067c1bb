"""Exponential back-off with jitter, drawn from the runtime's randomness."""

import random


class Backoff:
    """Waits that double up to a limit, each stretched by a random part so that many processes do not come back at once.

    Mutable: it remembers how often it was asked since the last reset.
    """

    def __init__(
        self, chance: random.Random, *, first: float = 0.5, longest: float = 30.0, jitter: float = 0.5
    ) -> None:
        self._chance = chance
        self._first = first
        self._longest = longest
        self._jitter = jitter
        self._failures = 0

    def next(self) -> float:
        """Return how long to wait now, and wait longer next time."""
        delay = exponential(self._failures, first=self._first, longest=self._longest)
        self._failures += 1
        return delay * (1 + self._jitter * self._chance.random())

    def reset(self) -> None:
        """Start again from the first wait."""
        self._failures = 0


def exponential(failures: int, *, first: float, longest: float) -> float:
    """Return ``first`` doubled once per failure, at most ``longest``."""
    return min(longest, first * float(1 << min(failures, 62)))

"""When a failed request is sent again, and after how long.

The rule keeps every write at most once: a read is repeated after any failure that may pass (429, 5xx, a broken
connection); a write only when the server certainly did not act on it (429, no connection was made, or a webhook that it
asks before could not be reached, as in the moment after a replica of that webhook was killed). A patch, put or delete
that got another 5xx may have happened, so its caller, a level-triggered reconcile, looks again and decides.
``Retry-After`` is honoured as far as half a minute: whoever asks has other things to do, and a caller that gives up
tries again later. Otherwise waits double from a tenth of a second, with jitter.
"""

import random

import msgspec

from spinney.kube.errors import (
    ApiError,
    ConnectionFailed,
    ConnectionRefused,
    KubeError,
    TooManyRequests,
)

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


SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

_PASSING = frozenset({500, 502, 503, 504})
_WEBHOOK = "failed calling webhook"
_UNREACHED = ("connection refused", "connection reset", "EOF", "no endpoints available", "cannot be reached")
"""How API servers word that nobody answered; one that was too slow is not asked again and again."""


class RetryPolicy(msgspec.Struct, frozen=True):
    """How often a request is repeated, and how long the waits are."""

    attempts: int = 5
    first_delay: float = 0.1
    longest_delay: float = 10.0
    longest_wanted: float = 30.0
    """How long the server may have us wait."""

    def delay(self, method: str, attempt: int, error: KubeError, chance: random.Random) -> float | None:
        """Return how long to wait before the next attempt, or None if there is to be none.

        ``attempt`` counts from 1. An eviction that a disruption budget forbids is a 429 too, but about the object,
        not about load: the caller's to judge.
        """
        if attempt >= self.attempts or not _may_repeat(method, error):
            return None
        wanted = error.retry_after if isinstance(error, ApiError) else None
        return max(min(wanted or 0.0, self.longest_wanted), self.backoff(attempt, chance))

    def backoff(self, attempt: int, chance: random.Random) -> float:
        """Return how long to wait after so many attempts, where the server says nothing of it."""
        return exponential(attempt - 1, first=self.first_delay, longest=self.longest_delay) * (0.5 + chance.random())


NEVER = RetryPolicy(attempts=1)


def _may_repeat(method: str, error: KubeError) -> bool:
    if isinstance(error, TooManyRequests):
        return not error.has_cause("DisruptionBudget")
    if isinstance(error, ConnectionRefused) or _is_webhook_unreached(error):
        return True
    if method not in SAFE_METHODS:
        return False
    return isinstance(error, ConnectionFailed) or (isinstance(error, ApiError) and error.status in _PASSING)


def _is_webhook_unreached(error: KubeError) -> bool:
    """Tell whether the server could not ask a webhook, and so has done nothing."""
    if not isinstance(error, ApiError) or error.status != 500 or _WEBHOOK not in error.message:
        return False
    return any(words in error.message for words in _UNREACHED)

"""Ages as kubectl shows them: two units at most, fewer the older a thing is."""

from datetime import datetime, timedelta

from spinney.api.time import parse_timestamp

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_YEAR = 365 * _DAY


def age(since: str | None, now: datetime) -> str:
    """Return how long ago a timestamp was; ``<unknown>`` if there is none."""
    if not since:
        return "<unknown>"
    return short_duration(now - parse_timestamp(since))


def short_duration(duration: timedelta) -> str:
    """Return a duration for people."""
    seconds = int(duration.total_seconds())
    if seconds < -1:
        return "<invalid>"
    seconds = max(seconds, 0)
    if seconds < 2 * _MINUTE:
        return f"{seconds}s"
    if seconds < 10 * _MINUTE:
        return _two(seconds, _MINUTE, "m", 1, "s")
    if seconds < 3 * _HOUR:
        return f"{seconds // _MINUTE}m"
    if seconds < 8 * _HOUR:
        return _two(seconds, _HOUR, "h", _MINUTE, "m")
    if seconds < 2 * _DAY:
        return f"{seconds // _HOUR}h"
    if seconds < 8 * _DAY:
        return _two(seconds, _DAY, "d", _HOUR, "h")
    if seconds < 2 * _YEAR:
        return f"{seconds // _DAY}d"
    if seconds < 8 * _YEAR:
        return _two(seconds, _YEAR, "y", _DAY, "d")
    return f"{seconds // _YEAR}y"


def _two(seconds: int, large: int, large_name: str, small: int, small_name: str) -> str:
    whole, rest = divmod(seconds, large)
    return f"{whole}{large_name}{rest // small}{small_name}" if rest // small else f"{whole}{large_name}"

"""Ages as kubectl shows them: two units at most, fewer the older a thing is."""

from datetime import datetime, timedelta
from typing import Final

from spinney.api.time import parse_timestamp

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_YEAR = 365 * _DAY
_FORMS: Final = (  # up to how many seconds, in which unit, and with which smaller one beside it
    (2 * _MINUTE, 1, "s", 0, ""),
    (10 * _MINUTE, _MINUTE, "m", 1, "s"),
    (3 * _HOUR, _MINUTE, "m", 0, ""),
    (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
    (2 * _DAY, _HOUR, "h", 0, ""),
    (8 * _DAY, _DAY, "d", _HOUR, "h"),
    (2 * _YEAR, _DAY, "d", 0, ""),
    (8 * _YEAR, _YEAR, "y", _DAY, "d"),
)


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
    for limit, unit, letter, smaller, other in _FORMS:
        if seconds < limit:
            whole, rest = divmod(max(seconds, 0), unit)
            beside = rest // smaller if smaller else 0
            return f"{whole}{letter}{beside}{other}" if beside else f"{whole}{letter}"
    return f"{seconds // _YEAR}y"

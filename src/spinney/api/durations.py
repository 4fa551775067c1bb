"""Durations as Go and ``metav1.Duration`` write them: ``4h30m``, ``1m30s``, ``250ms``, ``-1s``.

Amounts below a microsecond, which Python does not represent, are cut off.
"""

import re
from datetime import timedelta
from fractions import Fraction
from typing import Final

_MICROSECONDS: Final = {
    "ns": Fraction(1, 1000),
    "us": Fraction(1),
    "µs": Fraction(1),
    "μs": Fraction(1),
    "ms": Fraction(1000),
    "s": Fraction(1_000_000),
    "m": Fraction(60_000_000),
    "h": Fraction(3_600_000_000),
}
_PART: Final = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?P<unit>ns|us|µs|μs|ms|s|m|h)")
# Go counts nanoseconds in an int64.
_LIMIT: Final = Fraction(2**63, 1000)
LONGEST: Final = "2562047h47m16s"
"""The longest duration, in whole seconds."""


class InvalidDuration(ValueError):
    """A text that is not a duration."""

    def __init__(self, text: str, fault: str = "") -> None:
        super().__init__(
            fault
            or f"{text!r} is not a duration; expected numbers with units (h, m, s, ms, us, ns), such as 15s or 4h30m"
        )
        self.text = text


class DurationTooLong(InvalidDuration):
    """A duration that Go, and with it Kubernetes, cannot hold."""

    def __init__(self, text: str) -> None:
        super().__init__(text, f"{text!r} is too long; the longest duration is {LONGEST}, which is 292 years")


def parse_duration(text: str) -> timedelta:
    """Return the duration that ``text`` denotes; raises :class:`InvalidDuration`."""
    unsigned = text[1:] if text[:1] in {"+", "-"} else text
    if unsigned == "0":
        return timedelta()
    microseconds, position = Fraction(), 0
    while match := _PART.match(unsigned, position):
        microseconds += Fraction(match["number"].rstrip(".")) * _MICROSECONDS[match["unit"]]
        position = match.end()
    if position == 0 or position != len(unsigned):
        raise InvalidDuration(text)
    if microseconds >= _LIMIT:
        raise DurationTooLong(text)
    whole = int(microseconds)
    return timedelta(microseconds=-whole if text[0] == "-" else whole)


def format_duration(duration: timedelta) -> str:
    """Return the text Go writes for ``duration``: ``4h30m0s``, ``1.5s``, ``250ms``, ``0s``."""
    total = duration // timedelta(microseconds=1)
    sign, total = ("-", -total) if total < 0 else ("", total)
    if total == 0:
        return "0s"
    if total < 1000:
        return f"{sign}{total}µs"
    if total < 1_000_000:
        return f"{sign}{_decimal(total, 1000)}ms"
    minutes, rest = divmod(total, 60_000_000)
    seconds = f"{_decimal(rest, 1_000_000)}s"
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{sign}{hours}h{minutes}m{seconds}"
    return f"{sign}{minutes}m{seconds}" if minutes else f"{sign}{seconds}"


def _decimal(amount: int, unit: int) -> str:
    whole, rest = divmod(amount, unit)
    return f"{whole}.{str(rest).zfill(len(str(unit)) - 1).rstrip('0')}" if rest else str(whole)

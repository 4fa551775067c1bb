"""Timestamps as Kubernetes writes them.

``metav1.Time`` has whole seconds (``2026-01-01T00:00:00Z``); ``metav1.MicroTime``, used by leases and events, always
has six decimals and is refused without them, so structs carry it as text made by :func:`micro_timestamp`.
"""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

MicroTime = str

_OFFSET: Final = "+00:00"


def to_seconds(moment: datetime) -> datetime:
    """Return ``moment`` in UTC with the part below a second cut off: what survives being stored."""
    return moment.astimezone(UTC).replace(microsecond=0)


def timestamp(moment: datetime) -> str:
    """Return ``moment`` as a ``metav1.Time``."""
    return _in_utc(moment).isoformat(timespec="seconds").removesuffix(_OFFSET) + "Z"


@lru_cache(maxsize=8)
def shared_timestamp(second: datetime) -> str:
    """Return the timestamp of a whole second; what is written within it has the same text."""
    return timestamp(second)


def micro_timestamp(moment: datetime) -> MicroTime:
    """Return ``moment`` as a ``metav1.MicroTime``."""
    return _in_utc(moment).isoformat(timespec="microseconds").removesuffix(_OFFSET) + "Z"


def _in_utc(moment: datetime) -> datetime:
    """Return ``moment`` in UTC, where it nearly always is; to look is quicker than to convert."""
    return moment if moment.tzinfo is UTC else moment.astimezone(UTC)


def parse_timestamp(text: str) -> datetime:
    """Return the moment that a ``metav1.Time``, ``metav1.MicroTime`` or other RFC 3339 text names, in UTC."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone; expected RFC 3339, such as 2026-01-01T00:00:00Z")
    return moment.astimezone(UTC)

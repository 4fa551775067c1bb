"""Gangs that failed rest for a while, and no longer than that."""

from datetime import UTC, datetime, timedelta

from spinney.gangs.tree import GangKey
from spinney.scheduler.framework.setbacks import FIRST_SECONDS, Setbacks

GANG = GangKey("podgang", "team", "train")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_gang_that_failed_rests() -> None:
    """It is left alone until its time is over."""
    setbacks = Setbacks()
    setbacks.add(GANG, "hook failed", NOW)
    setbacks.end({GANG}, NOW)

    assert setbacks.of(GANG, NOW + timedelta(seconds=FIRST_SECONDS / 2)) is not None
    assert setbacks.of(GANG, NOW + timedelta(seconds=FIRST_SECONDS)) is None


def test_a_clock_that_is_set_back_does_not_prolong_it() -> None:
    """An hour that is lived twice is not an hour more of rest."""
    setbacks = Setbacks()
    setbacks.add(GANG, "hook failed", NOW)
    setbacks.end({GANG}, NOW)

    assert setbacks.of(GANG, NOW - timedelta(hours=1)) is None

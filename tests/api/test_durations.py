"""Durations as Go reads and writes them."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api.durations import LONGEST, InvalidDuration, format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds", "written"),
    [
        ("4h", 14400, "4h0m0s"),
        ("4h30m", 16200, "4h30m0s"),
        ("90s", 90, "1m30s"),
        ("1.5h", 5400, "1h30m0s"),
        ("250ms", 0.25, "250ms"),
        ("1.5s", 1.5, "1.5s"),
        ("-1s", -1, "-1s"),
        ("+5s", 5, "5s"),
        ("0", 0, "0s"),
        (".5s", 0.5, "500ms"),
        ("1.s", 1, "1s"),
        ("15us", 0.000015, "15µs"),
        ("15µs", 0.000015, "15µs"),
        ("1ms500us", 0.0015, "1.5ms"),
        ("1000000ns", 0.001, "1ms"),
    ],
)
def test_reads_and_writes_as_go(text: str, seconds: float, written: str) -> None:
    """A text gives the duration Go gives it, and is written the way Go writes it."""
    duration = parse_duration(text)
    assert duration == timedelta(seconds=seconds)
    assert format_duration(duration) == written


@pytest.mark.parametrize("text", ["", "5", "1d", "h", "1h-5m", "1 h", "s1", "-", "."])
def test_refuses_what_is_no_duration(text: str) -> None:
    """The error names the text and the units there are."""
    with pytest.raises(InvalidDuration, match="is not a duration"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["3000000h", "-3000000h", "2562047h47m17s", "9" * 40 + "s"])
def test_a_duration_that_is_too_long_is_called_so(text: str) -> None:
    """The error names the text and the longest that there is, which is read."""
    with pytest.raises(InvalidDuration, match=f"'{text}' is too long; the longest duration is {LONGEST}, which is 292"):
        parse_duration(text)
    assert parse_duration(LONGEST).days // 365.25 == 292


@given(st.timedeltas(min_value=timedelta(days=-90000), max_value=timedelta(days=90000)))
def test_text_means_the_same_duration(duration: timedelta) -> None:
    """Parsing what was written gives the duration back, to the microsecond."""
    assert parse_duration(format_duration(duration)) == duration

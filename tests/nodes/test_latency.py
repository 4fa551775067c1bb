"""Latencies: fixed, uniform and exponential times."""

from datetime import timedelta
from random import Random

import pytest

from spinney.nodes.spec import InvalidLatency, Latency


def test_a_fixed_latency_is_always_the_same_and_draws_nothing() -> None:
    """A fixed latency leaves the random source untouched, so that other draws of a seed stay as they were."""
    random = Random(7)
    before = random.getstate()
    assert Latency.parse("2s").draw(random) == timedelta(seconds=2)
    assert random.getstate() == before


def test_a_range_draws_between_its_ends() -> None:
    """A range gives times between its ends, and different ones."""
    random = Random(7)
    drawn = {Latency.parse("1s..3s").draw(random) for _ in range(100)}
    assert len(drawn) > 90
    assert all(timedelta(seconds=1) <= time <= timedelta(seconds=3) for time in drawn)


def test_an_exponential_latency_has_its_mean() -> None:
    """An exponential latency averages its mean."""
    random = Random(7)
    latency = Latency.parse("exp(2s)")
    mean = sum((latency.draw(random) for _ in range(5000)), timedelta()) / 5000
    assert abs(mean.total_seconds() - 2) < 0.2


def test_no_time_at_all_is_a_latency() -> None:
    """Zero is allowed in every form."""
    assert {Latency.parse(text).draw(Random(1)) for text in ("0s", "0s..0s", "exp(0s)")} == {timedelta()}


@pytest.mark.parametrize("text", ["", "soon", "3s..1s", "-1s", "exp()", "1s..", "5"])
def test_nonsense_is_refused_with_what_was_expected(text: str) -> None:
    """A text that is no latency is refused, and the message shows the forms there are."""
    with pytest.raises(InvalidLatency, match=r"expected 2s, a range such as 1s\.\.3s, or exp\(2s\)"):
        Latency.parse(text)

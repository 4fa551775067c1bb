"""Forecasts of starts: 80 % intervals that learn from how forecasts before them came out."""

from random import Random

import pytest

from spinney.scheduler.plugins.backfill.forecasts import FEWEST, OCCASIONS, Forecasts


def told(forecasts: Forecasts, number: int, expected: float, waited: float, queue: str = "team") -> None:
    forecasts.made(number, "uid", queue, 1000.0 * number, expected)
    forecasts.came_out(number, 1000.0 * number + waited)


def test_nothing_is_claimed_on_too_little() -> None:
    """Before enough forecasts have come out there is no interval."""
    forecasts = Forecasts()
    for number in range(FEWEST - 1):
        told(forecasts, number, 600.0, 600.0)
        assert forecasts.interval("team", 600.0) is None
    told(forecasts, FEWEST, 600.0, 600.0)
    assert forecasts.interval("team", 600.0) is not None


def test_jobs_that_are_told_together_are_one_occasion() -> None:
    """A hundred jobs that came at once are early or late together: nothing is claimed before ten such occasions."""
    forecasts = Forecasts()
    for occasion in range(OCCASIONS):
        assert forecasts.interval("team", 600.0) is None
        for number in range(100):
            forecasts.made(number, f"{occasion}/{number}", "team", 10_000.0 * occasion + number, 600.0)
        for number in range(100):
            forecasts.came_out(number, 10_000.0 * occasion + 700.0)
    assert forecasts.interval("team", 600.0) is not None


@pytest.mark.parametrize("seed", range(5))
def test_four_of_five_start_inside_also_when_the_load_changes(seed: int) -> None:
    """Errors that double half way through are covered as well, within five per cent."""
    chance, forecasts = Random(seed), Forecasts()
    for number in range(3000):
        expected = chance.uniform(60, 36_000)
        spread = 0.5 if number < 1500 else 1.0
        told(forecasts, number, expected, expected * chance.lognormvariate(0.3, spread))
    assert 0.75 <= forecasts.inside / forecasts.judged <= 0.85


def test_a_forecast_that_is_always_late_is_corrected() -> None:
    """Where jobs start after twice the expected wait, the interval says so."""
    forecasts = Forecasts()
    for number in range(100):
        told(forecasts, number, 3600.0, 7200.0 + number)
    found = forecasts.interval("team", 3600.0)
    assert found is not None
    assert 7100 < found.low <= found.high < 7400


def test_a_job_that_still_waits_after_its_interval_is_learned_from_at_once() -> None:
    """Intervals become wider when jobs are late, not only when these have started in the end."""
    forecasts = Forecasts()
    for number in range(100):
        told(forecasts, number, 3600.0, 3600.0 + 10 * (37 * number % 100))
    before = forecasts.interval("team", 3600.0)
    for number in range(100, 105):
        forecasts.made(number, f"uid-{number}", "team", 0.0, 3600.0)
    forecasts.at(1e6)
    after = forecasts.interval("team", 3600.0)
    assert before is not None
    assert after is not None
    assert after.high > before.high
    so_far = (forecasts.judged, forecasts.inside)
    for number in range(100, 105):
        forecasts.came_out(number, 1e6)
    assert (forecasts.judged, forecasts.inside) == (so_far[0] + 5, so_far[1])


def test_each_end_of_the_interval_learns_by_itself() -> None:
    """Where jobs start earlier than they were told, intervals begin earlier; they do not end later."""
    forecasts = Forecasts()
    for number in range(200):
        told(forecasts, number, 3600.0, 3600.0 + 10 * (37 * number % 100))
    before = forecasts.interval("team", 3600.0)
    for number in range(200, 210):
        told(forecasts, number, 3600.0, 600.0)
    after = forecasts.interval("team", 3600.0)
    assert before is not None
    assert after is not None
    assert after.low < before.low
    assert after.high <= before.high


def test_intervals_grow_beyond_what_was_seen_while_waits_grow() -> None:
    """While each wait is longer than all before it, four of five still lie inside after a while."""
    forecasts = Forecasts()
    for number in range(300):
        told(forecasts, number, 600.0, 600.0 * 1.02**number)
    so_far = forecasts.inside
    for number in range(300, 600):
        told(forecasts, number, 600.0, 600.0 * 1.02**number)
    assert forecasts.inside - so_far >= 225


def test_a_job_that_never_starts_is_not_judged() -> None:
    """A forecast of a job that was deleted says nothing."""
    forecasts = Forecasts()
    forecasts.made("gone", "uid", "team", 0.0, 60.0)
    forecasts.keep({"another"})
    forecasts.came_out("gone", 1e6)
    assert forecasts.judged == 0

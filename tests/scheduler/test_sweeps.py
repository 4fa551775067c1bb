"""Jobs that were submitted together run about as long: what those that have ended say, and those that still run."""

from random import Random
from statistics import median_low

from spinney.scheduler.plugins.backfill.sweeps import SweepKind, Sweeps, Typical

KIND = SweepKind("team", 8, minute=100)
NOW = 10_000.0


def with_ended(*seconds: float, kind: SweepKind = KIND) -> Sweeps:
    sweeps = Sweeps()
    for number, ran in enumerate(seconds):
        sweeps.start(kind, number, 0.0)
        sweeps.end(kind, number, ran)
    return sweeps


def test_where_all_have_ended_it_is_their_median() -> None:
    """Compared with Python's own median."""
    chance = Random(5)
    for _ in range(50):
        ran = [float(chance.randint(1, 1000)) for _ in range(chance.randint(1, 20))]
        assert with_ended(*ran).typical(KIND, NOW) == Typical(median_low(ran), known=True)


def test_those_that_still_run_count_as_longer_than_they_have_run() -> None:
    """Three that ended soon say little of ten that have run for hours."""
    sweeps = with_ended(10, 20, 30)
    for number in range(10, 20):
        sweeps.start(KIND, number, NOW - 5000)
    assert sweeps.typical(KIND, NOW) == Typical(5000, known=False)


def test_only_jobs_of_about_the_same_minute_are_compared() -> None:
    """A neighbour minute belongs to the sweep; an hour later does not, nor another size or queue."""
    sweeps = with_ended(50)
    assert sweeps.typical(KIND._replace(minute=101), NOW) == Typical(50, known=True)
    for other in (KIND._replace(minute=160), KIND._replace(gpus=4), KIND._replace(queue="another")):
        assert sweeps.typical(other, NOW) is None


def test_a_job_that_has_run_longer_is_compared_with_those_that_did_too() -> None:
    """Nothing is concluded from those that ended sooner than this one has run."""
    sweeps = with_ended(10, 20, 300, 400, 500)
    assert sweeps.typical(KIND, NOW, beyond=100) == Typical(400, known=True)
    assert sweeps.typical(KIND, NOW, beyond=1000) is None


def test_what_was_evicted_says_nothing_of_run_times() -> None:
    """A job that was thrown out has not ended by itself."""
    sweeps = Sweeps()
    sweeps.start(KIND, "job", 0.0)
    sweeps.end(KIND, "job", None)
    assert sweeps.typical(KIND, NOW) is None


def test_sweeps_of_which_nobody_runs_are_forgotten() -> None:
    """A scheduler that runs for months keeps the newest, and all of which somebody runs."""
    sweeps = Sweeps()
    sweeps.start(KIND, "runs", 0.0)
    for number in range(2000):
        kind = SweepKind("team", 1, minute=1000 + 10 * number)
        sweeps.start(kind, number, 0.0)
        sweeps.end(kind, number, 7.0)
    assert sweeps.typical(KIND, NOW) == Typical(NOW, known=False)
    assert sweeps.typical(SweepKind("team", 1, minute=1000), NOW) is None
    assert sweeps.typical(SweepKind("team", 1, minute=1000 + 10 * 1999), NOW) == Typical(7.0, known=True)

"""Lost requests, refusals, broken watches, stale caches and crashes: the end is the same, and no invariant breaks.

``SPINNEY_STORMS=200 pytest -n auto tests/operator/test_faults.py`` runs two hundred histories instead of a few; each
kills the operator at least four times.
"""

import os
from functools import cache

import pytest

from spinney.runtime import run_virtual
from tests.operator.storms import Outcome, history

STORMS = int(os.environ.get("SPINNEY_STORMS", "3"))
SCHEDULERS = ("default-scheduler", "coscheduling")


@cache
def undisturbed(scheduler: str) -> Outcome:
    """Return what the same history comes to in calm weather."""
    return run_virtual(history(0, scheduler, stormy=False))


@pytest.mark.parametrize("seed", range(STORMS))
def test_a_storm_changes_nothing(seed: int) -> None:
    """Killed and lied to while it creates, scales, updates and deletes, the operator arrives where it would have."""
    scheduler = SCHEDULERS[seed % len(SCHEDULERS)]

    outcome = run_virtual(history(seed, scheduler, stormy=True))

    assert outcome.violations == ()
    assert outcome.deaths >= 4
    assert outcome.faults > 0.05 * outcome.calls
    calm = undisturbed(scheduler).state
    assert sorted(outcome.state) == sorted(calm)
    assert outcome.state == calm
    assert outcome.repairs == 0


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_in_calm_weather_everything_is_there(scheduler: str) -> None:
    """The history that storms are compared with ends as written: one replica of one set, updated, and nothing else."""
    outcome = undisturbed(scheduler)

    assert outcome.violations == ()
    expected = [f"model-0-leader-{k}" for k in range(2)]
    for j in range(3):
        expected += [f"model-0-sg-{j}-worker-{k}" for k in range(2)] + [f"model-0-sg-{j}-decode-0"]
    pods = {name.removeprefix("Pod/"): pod for name, pod in outcome.state.items() if name.startswith("Pod/")}
    assert sorted(pods) == sorted(expected)
    assert {pod["spec"]["containers"][0]["image"] for pod in pods.values()} == {"registry.example/worker:2"}
    gangs = sorted(name for name in outcome.state if name.startswith("PodGang/"))
    assert gangs == ["PodGang/model-0", "PodGang/model-0-sg-0", "PodGang/model-0-sg-1"]
    assert not any("fleeting" in name for name in outcome.state)

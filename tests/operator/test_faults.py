"""Lost requests, refusals, broken watches, stale caches and crashes: the end is the same, and no invariant breaks.

``SPINNEY_STORMS=200 pytest -n auto tests/operator/test_faults.py`` runs two hundred histories of each sort instead of a
few; ``SPINNEY_STORMS_FROM=200`` begins with another seed. Each history kills the operator at least four times.
"""

import os
from collections import Counter
from collections.abc import Container, Mapping
from functools import cache
from typing import Any

import pytest

from spinney.api.struct import JSON
from spinney.backends import additions
from spinney.runtime import run_virtual
from tests.operator.storms import PHASES, Outcome, history

FIRST = int(os.environ.get("SPINNEY_STORMS_FROM", "0"))
STORMS = range(FIRST, FIRST + int(os.environ.get("SPINNEY_STORMS", "2")))
SCHEDULERS = ("default-scheduler", "coscheduling")


@cache
def undisturbed(scheduler: str) -> Outcome:
    """Return what the same history comes to in calm weather."""
    return run_virtual(history(0, scheduler, stormy=False))


@cache
def storm(seed: int) -> Outcome:
    """Return what became of a history in a storm."""
    return run_virtual(history(seed, _scheduler(seed), stormy=True))


@pytest.mark.parametrize("seed", STORMS)
def test_a_storm_changes_nothing(seed: int) -> None:
    """Killed and lied to while it creates, scales, updates and deletes, the operator arrives where it would have."""
    outcome = storm(seed)

    assert outcome.violations == ()
    weather = outcome.weather
    assert all(weather.kills[phase] for phase in PHASES)
    assert 0.06 < weather.faults.total() / weather.calls < 0.14
    calm = undisturbed(_scheduler(seed)).state
    assert sorted(outcome.state) == sorted(calm)
    assert outcome.state == calm
    assert outcome.repairs == 0


@pytest.mark.parametrize("seed", STORMS)
def test_haste_changes_nothing_either(seed: int) -> None:
    """A user who scales, updates and deletes what is still being created, in a storm, gets the same in the end."""
    outcome = run_virtual(history(seed, _scheduler(seed), stormy=True, hasty=True))

    assert outcome.violations == ()
    assert outcome.weather.kills.total() >= 4
    calm = undisturbed(_scheduler(seed)).state
    assert sorted(outcome.state) == sorted(calm)
    assert _without_former_lives(outcome.state) == _without_former_lives(calm)
    assert outcome.repairs == 0


def test_everything_that_can_go_wrong_does() -> None:
    """Storms bring every refusal, lost requests and lost answers, and watches that are refused and that break."""
    seen: Counter[str] = Counter()
    for seed in STORMS[:2]:
        seen += storm(seed).weather.faults
        assert storm(seed).weather.breaks

    assert set(seen) == {"409", "429", "500", "503", "504", "request lost", "answer lost", "watch refused"}


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


def _scheduler(seed: int) -> str:
    return SCHEDULERS[seed % len(SCHEDULERS)]


def _without_former_lives(state: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return a state that does not say what an update found complete and replaced, and what it came before."""
    return {name: _without(each, {additions.INCARNATION, "updateProgress"}) for name, each in state.items()}


def _without(value: Any, keys: Container[str]) -> Any:
    if isinstance(value, dict):
        return {key: _without(each, keys) for key, each in value.items() if key not in keys}
    return value

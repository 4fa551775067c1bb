"""A few storms over the whole stack; ``make storms SEEDS=10000`` goes through many, side by side."""

import os
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.storms.story import Outcome, storm

pytestmark = pytest.mark.xdist_group("storms")
"""One worker runs them all: what came of a storm is looked at twice."""

SEEDS = (4, 5, 6, 7, 12, 17, 18, 22)
"""A few short ones. Each thing that should happen does in two of them at least: a change shifts what a seed brings."""

_HAPPEN = (
    *("operator killed", "schedulers killed", "server killed", "leader killed", "jump", "fail_node", "replace_node"),
    *("session plugin", "framework plugin", "backend plugin", "reviews", "not reviewed"),
    *("Job", "Deployment", "StatefulSet"),
    *("409", "429", "500", "503", "504", "answer lost"),
)


@cache
def _outcome(seed: int) -> Outcome:
    return storm(seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_storm_passes(seed: int) -> None:
    """While everything fails no invariant breaks, and afterwards everything that users asked for is there."""
    assert _outcome(seed).violations == ()


def test_a_seed_replays_a_storm() -> None:
    """In another process, where sets have another order, a seed gives the same writes, pods, nodes and faults."""
    replay = subprocess.run(
        [sys.executable, "-m", "tests.storms", "--seed", str(SEEDS[1])],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    assert f"ended as {_outcome(SEEDS[1]).digest}" in replay.stdout


def test_storms_bring_what_they_should() -> None:
    """In a few storms processes, leaders and servers die, clocks jump, nodes go, plugins fail and calls are refused."""
    seen: Counter[str] = Counter()
    for seed in SEEDS:
        seen += _outcome(seed).happened
    assert not [each for each in _HAPPEN if not seen[each]]

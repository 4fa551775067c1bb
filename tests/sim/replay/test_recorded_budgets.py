"""Disruption budgets of a recording hold in its replay, counted over the pods of the replay."""

from pathlib import Path
from typing import Any

import pytest

from spinney.api.struct import JSON
from spinney.sim.replay import History
from spinney.sim.replay.checking import problems_of
from spinney.sim.replay.history import JobHappening
from spinney.sim.replay.reading import Wanted, read_trace
from tests.sim.replay.building import told
from tests.sim.replay.recordings import a_class, a_node, a_pod, replay_of, taken

CLASSES = a_class("low", 10), a_class("high", 60)
WEB = {"app": "web"}


def a_budget(minute: int = 0, *, allowed: int = 0, **spec: Any) -> JSON:
    """Return a budget over the pods of one application."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default", "creationTimestamp": f"2026-05-04T08:{minute:02d}:00Z"},
        "spec": {"selector": {"matchLabels": WEB}, **spec},
        "status": {"disruptionsAllowed": allowed},
    }


def low(number: int, node: str = "", **pod: Any) -> JSON:
    return a_pod(f"low-{number}", node, gpus=2, priorityClassName="low", priority=10, labels=WEB, **pod)


def high(number: int, minute: int) -> JSON:
    return a_pod(f"high-{number}", gpus=2, minute=minute, priorityClassName="high", priority=60)


def evicted(directory: Path, *budgets: JSON) -> list[tuple[float, str]]:
    """Replay two pods that give way to two others, one after another; return who went."""
    fixed = (a_node("a"), *CLASSES, low(0, "a"), low(1, "a"))
    taken(directory, 0, *fixed, *budgets)
    taken(directory, 9, *fixed, *budgets, high(0, 2), high(1, 5))
    trace, history = replay_of(directory)
    return [(at, name) for at, what, name in told(trace, history) if what == "evicted"]


def test_without_a_budget_both_give_way(tmp_path: Path) -> None:
    """What the budgets of the other tests keep."""
    assert [at for at, _ in evicted(tmp_path)] == [120, 300]


@pytest.mark.parametrize(
    "spec", [{"minAvailable": 1}, {"maxUnavailable": 1}, {"minAvailable": "50%"}, {"maxUnavailable": "40%"}]
)
def test_a_budget_keeps_as_many_as_it_says(spec: JSON, tmp_path: Path) -> None:
    """One goes, and while it waits the other stays; what the budget allowed in the recording does not matter."""
    assert [at for at, _ in evicted(tmp_path, a_budget(allowed=0, **spec))] == [120]


def test_a_budget_that_allows_nothing_keeps_all(tmp_path: Path) -> None:
    """The victims of a replay went whatever protected them; the recording says that two might go."""
    assert evicted(tmp_path, a_budget(allowed=2, minAvailable=2)) == []


def test_a_budget_holds_from_when_it_was_created(tmp_path: Path) -> None:
    """Not from the snapshot that has it first, and not before."""
    fixed = (a_node("a"), *CLASSES, low(0, "a"), low(1, "a"))
    taken(tmp_path, 0, *fixed)
    taken(tmp_path, 9, *fixed, a_budget(4, minAvailable=1), high(0, 2), high(1, 5))
    trace, history = replay_of(tmp_path)

    assert [at for at, what, _ in told(trace, history) if what == "evicted"] == [120]


def test_a_budget_that_is_gone_keeps_nobody(tmp_path: Path) -> None:
    """It holds up to the snapshot that has it no longer."""
    fixed = (a_node("a"), *CLASSES, low(0, "a"), low(1, "a"))
    taken(tmp_path, 0, *fixed, a_budget(minAvailable=2))
    taken(tmp_path, 9, *fixed, high(0, 2))
    trace, history = replay_of(tmp_path)

    assert [at for at, what, _ in told(trace, history) if what == "evicted"] == [540]


def test_a_budget_that_is_none_is_left_out(tmp_path: Path) -> None:
    """A file may hold anything: the report names it."""
    taken(tmp_path, 0, a_node("a"), a_budget(minAvailable="some"), low(0, "a"))
    trace, _ = replay_of(tmp_path)

    assert any("PodDisruptionBudget default/web: " in note for note in trace.notes)


def test_an_eviction_that_a_budget_forbids_is_found(tmp_path: Path) -> None:
    """The check counts for itself."""
    taken(tmp_path, 0, a_node("a"), a_budget(minAvailable=2), low(0, "a"), low(1, "a"))
    trace = read_trace(tmp_path, Wanted())
    runs: list[JobHappening] = []
    for number in range(2):
        runs.append(JobHappening(0.0, "submitted", number))
        runs.append(JobHappening(0.0, "started", number, ("a",), ((2 * number, 2 * number + 1),)))
    wrong = History([*runs, JobHappening(60.0, "evicted", 0, ("a",), ((0, 1),))])

    assert problems_of(trace, History(runs)) == []
    assert problems_of(trace, wrong) == [
        "60 s: job default-low-0: was evicted, which leaves 1 healthy pods where "
        "PodDisruptionBudget default/web needs 2"
    ]

"""Stale gangs: what is left of a broken gang goes once its grace is over."""

from dataclasses import replace
from datetime import timedelta

import pytest

from spinney.gangs.tree import Gang, GroupSet, PodSet
from tests.scheduler.building import a_gang, a_node, a_pod, a_runtime, an_inventory, put_gang
from tests.scheduler.victims.worlds import evicted, run_on


def leftovers(gang: Gang, *sets: str) -> dict[str, str]:
    """Return what is evicted of a gang of which one pod of each of these sets still runs."""
    inventory = an_inventory(a_node("n0"))
    pods = [
        a_pod(f"gang-{name or number}", gang="gang", pod_set=name, gpus=1, node="n0")
        for number, name in enumerate(sets)
    ]
    put_gang(inventory, gang, pods)
    return evicted(run_on(inventory, "stalegangeviction"))


def broken(**changes: object) -> Gang:
    """Return a gang of two that has been below its minimum for ten minutes."""
    since = a_runtime().clock.now() - timedelta(minutes=10)
    return replace(a_gang("gang", minimum=2), **{"stale_since": since, **changes})  # type: ignore[arg-type]


def test_a_gang_below_its_minimum_gives_up_the_rest() -> None:
    """Once the grace is over the remaining pods are evicted."""
    assert leftovers(broken(), "") == {"gang-0": ""}


def test_a_gang_with_its_minimum_is_left_alone() -> None:
    """A whole gang is not stale, whatever was remembered."""
    assert leftovers(broken(), "", "") == {}


@pytest.mark.parametrize(("grace", "ended"), [(300, True), (3600, False), (-1, False), (0, True)])
def test_the_grace_of_the_gang_counts(grace: int, ended: bool) -> None:
    """A gang's own grace goes before the default; a negative one is for ever."""
    assert bool(leftovers(broken(staleness_grace=timedelta(seconds=grace)), "")) is ended


def test_a_gang_seen_stale_for_the_first_time_has_its_grace() -> None:
    """The grace begins when a gang is first seen below its minimum."""
    assert leftovers(broken(stale_since=None), "") == {}


def test_a_gang_of_an_operator_is_left_to_it() -> None:
    """Who made the gang ends it."""
    assert leftovers(broken(owned_by_operator=True), "") == {}


def test_an_optional_group_does_not_make_a_gang_stale() -> None:
    """With two of three groups needed, a gang that has two is not stale."""
    root = GroupSet("", tuple(PodSet(name, 1) for name in ("x", "y", "z")), min_groups=2)
    assert leftovers(broken(root=root), "x", "y") == {}
    assert set(leftovers(broken(root=root), "x")) == {"gang-x"}

"""Stale gangs: what is left of a broken gang goes once its grace is over."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from spinney.gangs.tree import Gang, GroupSet, PodSet
from spinney.runtime import Runtime, SystemClock
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.cycle.scheduler import Scheduler
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


def test_when_a_gang_was_first_seen_stale_is_remembered() -> None:
    """The grace of a gang that nobody marked runs from cycle to cycle, and begins anew when it recovers."""
    inventory = an_inventory(a_node("n0"))
    gang = replace(a_gang("gang", minimum=2), staleness_grace=timedelta(seconds=60))
    put_gang(inventory, gang, [a_pod("gang-0", gang="gang", gpus=1, node="n0")])
    clock = Standing()
    config = SchedulerConfig(actions=("stalegangeviction",), explain=False)
    base = a_runtime()
    scheduler = Scheduler(config, inventory, runtime=Runtime(clock=clock, random=base.random, executor=base.executor))

    assert not scheduler.run_cycle().evictions
    clock.passed += timedelta(seconds=59)
    assert not scheduler.run_cycle().evictions
    inventory.apply(a_pod("gang-1", gang="gang", gpus=1, node="n0"))
    assert not scheduler.run_cycle().evictions
    inventory.delete(a_pod("gang-1", gang="gang", gpus=1, node="n0"))
    clock.passed += timedelta(seconds=59)
    assert not scheduler.run_cycle().evictions
    clock.passed += timedelta(seconds=60)
    assert len(scheduler.run_cycle().evictions) == 1


def test_a_grace_that_is_over_does_not_hide_one_that_will_be() -> None:
    """A scheduler at rest looks again when the grace of another gang ends, though that of the first has ended."""
    inventory = an_inventory(a_node("n0"))
    for name, seconds in (("over", 300), ("soon", 630)):
        gang = replace(broken(staleness_grace=timedelta(seconds=seconds)), key=a_gang(name).key, uid=name)
        put_gang(inventory, gang, [a_pod(f"{name}-0", gang=name, gpus=1, node="n0")])

    result = run_on(inventory, "stalegangeviction")

    assert set(evicted(result)) == {"over-0"}
    assert result.next_moment == a_runtime().clock.now() + timedelta(seconds=30)


class Standing(SystemClock):
    """A clock that moves only when told to."""

    def __init__(self) -> None:
        self.passed = timedelta(0)
        self._start = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self._start + self.passed


def test_a_gang_of_an_operator_is_left_to_it() -> None:
    """Who made the gang ends it."""
    assert leftovers(broken(owned_by_operator=True), "") == {}


def test_an_optional_group_does_not_make_a_gang_stale() -> None:
    """With two of three groups needed, a gang that has two is not stale."""
    root = GroupSet("", tuple(PodSet(name, 1) for name in ("x", "y", "z")), min_groups=2)
    assert leftovers(broken(root=root), "x", "y") == {}
    assert set(leftovers(broken(root=root), "x")) == {"gang-x"}


@pytest.mark.parametrize(("seconds", "ended"), [(60, False), (600, True)])
def test_a_pod_that_does_not_end_is_not_counted_for_ever(seconds: int, ended: bool) -> None:
    """On a node that is silent a pod is terminating for hours; the rest of its gang does not hold its nodes so long."""
    inventory = an_inventory(a_node("n0"), a_node("silent"))
    lost = a_pod(
        "lost", gang="gang", gpus=1, node="silent", terminating=True, terminating_for=timedelta(seconds=seconds)
    )
    put_gang(inventory, broken(), [lost, a_pod("rest", gang="gang", gpus=1, node="n0")])
    assert set(evicted(run_on(inventory, "stalegangeviction"))) == ({"rest"} if ended else set())


def test_a_scheduler_at_rest_looks_again_when_a_pod_has_not_ended() -> None:
    """Nothing happens in the cluster when a pod has been terminating for too long: time alone says so."""
    inventory = an_inventory(a_node("n0"), a_node("silent"))
    lost = a_pod("lost", gang="gang", gpus=1, node="silent", terminating=True, terminating_for=timedelta(seconds=50))
    put_gang(inventory, broken(), [lost, a_pod("rest", gang="gang", gpus=1, node="n0")])
    scheduler = Scheduler(SchedulerConfig(explain=False), inventory, runtime=a_runtime())
    assert scheduler.run_cycle().next_moment == a_runtime().clock.now() + timedelta(seconds=70)

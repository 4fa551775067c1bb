"""One gang, one failure: what goes wrong with a gang, or a plugin, stays there."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random

import pytest

from spinney.gangs.tree import GroupSet, PodSet
from spinney.runtime import InlineExecutor, Runtime
from spinney.scheduler import Plugin, PodGroupInfo, Session
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.cycle.scheduler import Scheduler
from spinney.scheduler.fairshare import Amounts
from spinney.scheduler.framework.results import CycleResult
from tests.scheduler.building import (
    NOW,
    StandingClock,
    a_gang,
    a_node,
    a_pod,
    a_scheduler,
    an_inventory,
    put_gang,
    put_job,
)
from tests.scheduler.victims.worlds import Job, World, build


class Unopened(Plugin):
    """Cannot open."""

    name = "unopened"

    def on_session_open(self, session: Session) -> None:
        raise RuntimeError("lost my configuration")


class Saboteur(Plugin):
    """Makes every look at the pods of one job fail, as a plugin may that writes to what it is given."""

    name = "saboteur"

    def on_session_open(self, session: Session) -> None:
        def break_it(job: PodGroupInfo) -> None:
            if job.name == "bad":
                job.__dict__["by_pod_set"] = None

        session.add_pre_job_allocation_fn(break_it)


class Comparing(Plugin):
    """Orders jobs by a comparison that finds all equal."""

    name = "comparing"

    def on_session_open(self, session: Session) -> None:
        session.add_job_order_fn(lambda left, right: 0)


def bound(result: CycleResult) -> set[str]:
    """Return the pods that were given a node."""
    return {bind.pod.name for bind in result.binds}


def said(result: CycleResult) -> dict[str, tuple[str, str]]:
    """Return reason and message of every gang that was refused."""
    return {refused.gang.name: (refused.reason, refused.message) for refused in result.unschedulable}


def test_a_plugin_that_cannot_open_lets_everything_wait_and_says_so() -> None:
    """Nothing is placed or evicted without a plugin that might have refused it, and each gang names it."""
    inventory = build(World((2,), (("a", 1), ("b", 1)), (Job("run", places=("n0", "n0")), Job("waiting", queue="b"))))
    put_job(inventory, "other", 1)

    result = a_scheduler(inventory, Unopened).run_cycle()

    assert not result.binds
    assert not result.evictions
    assert set(said(result)) == {"waiting", "other"}
    for reason, message in said(result).values():
        assert reason == "SchedulerError"
        assert "plugin unopened failed to open" in message
        assert "RuntimeError: lost my configuration" in message
    assert result.failures == {("unopened", "on_session_open"): 1}
    assert result.next_moment is not None, "it is tried again though nothing happens"


def test_a_gang_that_cannot_be_placed_by_error_is_alone_in_that() -> None:
    """What raises while one gang is placed is said on that gang; the others are placed in the same cycle."""
    inventory = an_inventory(a_node("n1"))
    for name in ("bad", "good"):
        put_job(inventory, name, 2)

    result = a_scheduler(inventory, Saboteur).run_cycle()

    assert bound(result) == {"good-0", "good-1"}
    reason, message = said(result)["bad"]
    assert reason == "SchedulerError"
    assert "TypeError" in message
    assert sum(result.errors.values()) == 1


@dataclass
class _MovingClock(StandingClock):
    moment: datetime = field(default=NOW)

    def now(self) -> datetime:
        return self.moment


def test_a_gang_that_failed_rests_longer_each_time() -> None:
    """A gang whose placing raised is left alone for a while; what was said about it stays."""
    inventory = an_inventory(a_node("n1"))
    put_job(inventory, "bad", 2)
    known = a_scheduler(inventory, Saboteur)
    clock = _MovingClock()
    runtime = Runtime(clock=clock, random=Random(0), executor=InlineExecutor())
    scheduler = Scheduler(known.config, inventory, runtime=runtime, registry=known.registry)
    rests: list[timedelta] = []
    for _ in range(3):
        first = scheduler.run_cycle()
        assert sum(first.errors.values()) == 1
        at_once = scheduler.run_cycle()
        assert not at_once.errors, "it is not even looked at"
        assert said(at_once) == said(first)
        assert first.next_moment is not None
        rests.append(first.next_moment - clock.moment)
        clock.moment = first.next_moment
    assert rests == [timedelta(seconds=1), timedelta(seconds=2), timedelta(seconds=4)]


def test_a_comparison_of_jobs_survives_a_reclaim() -> None:
    """An order by comparison, as the plugin document writes it, sees what a committed scenario changed."""
    jobs = (
        *(Job(f"run{number}", places=("n0",), priority=number) for number in range(4)),
        Job("first", queue="b"),
        Job("second", queue="b"),
    )
    inventory = build(World((4,), (("a", 2), ("b", 2)), jobs))

    result = a_scheduler(inventory, Comparing).run_cycle()

    assert len(result.evictions) == 2


@pytest.mark.parametrize("answer", [None, "much"])
def test_queue_figures_that_fail_are_not_shown(answer: object) -> None:
    """A plugin that cannot say what a queue holds keeps nobody from being told the rest."""

    class Figures(Plugin):
        name = "figures"

        def on_session_open(self, session: Session) -> None:
            def figures(queue: str) -> Amounts:
                if answer is None:
                    raise RuntimeError("lost my configuration")
                return answer  # type: ignore[return-value]

            session.add_get_queue_allocated_resources_fn(figures)
            session.add_get_queue_deserved_resources_fn(figures)
            session.add_get_queue_fair_share_fn(figures)

    jobs = (*(Job(f"run{number}", places=("n0",)) for number in range(2)), Job("waiting", queue="b"))
    inventory = build(World((2,), (("a", 1), ("b", 1)), jobs))
    config = SchedulerConfig()
    scheduler = a_scheduler(inventory, Figures, config=config)
    order = [*scheduler.config.plugins[-1:], *scheduler.config.plugins[:-1]]
    first = Scheduler(
        SchedulerConfig(plugins=tuple(order)), inventory, runtime=scheduler.runtime, registry=scheduler.registry
    )

    result = first.run_cycle()

    assert len(result.evictions) == 1
    assert {plugin for plugin, _ in result.failures} == {"figures"}


def _keys() -> Iterator[object]:
    yield from (None, 1, "text", float("nan"), object())


def test_keys_that_do_not_compare_count_as_equal() -> None:
    """Jobs whose plugin gives keys of several kinds are ordered by age, and all placed."""
    inventory = an_inventory(a_node("n1"))
    for number in range(5):
        put_job(inventory, f"job{number}", 1)
    keys = list(_keys())

    class Keys(Plugin):
        name = "keys"

        def on_session_open(self, session: Session) -> None:
            session.add_job_order_key(lambda job: keys[int(job.name[-1])])

    result = a_scheduler(inventory, Keys).run_cycle()

    assert len(result.binds) == 5
    assert result.failures["keys", "job_order"] >= 1


def test_a_gang_of_very_many_parts_is_placed() -> None:
    """A gang may have more sub-groups than Python can nest calls."""
    count = 1200
    inventory = an_inventory(*(a_node(f"n{number}", gpus=count) for number in range(12)))
    root = GroupSet("", tuple(PodSet(f"s{number}", 1) for number in range(count)))
    pods = (a_pod(f"p{number}", gang="wide", pod_set=f"s{number}", cpu="1m") for number in range(count))
    put_gang(inventory, a_gang("wide", root=root), pods)

    assert len(a_scheduler(inventory).run_cycle().binds) == count


class Leaving(Plugin):
    """Ends the program, as a script would, where it is told to."""

    name = "leaving"
    at = ""

    def on_session_open(self, session: Session) -> None:
        def leave(*asked: object) -> None:
            if any(getattr(each, "name", "").startswith("bad") for each in asked):
                sys.exit(3)

        if self.at == "open":
            sys.exit(3)
        getattr(session, self.at)(leave)


@pytest.mark.parametrize("at", ["add_predicate_fn", "add_pre_predicate_fn"])
def test_a_plugin_does_not_end_the_program(at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What calls sys.exit about one gang refuses that gang; all others are placed."""
    monkeypatch.setattr(Leaving, "at", at)
    inventory = an_inventory(a_node("n0"), a_node("n1"))
    put_job(inventory, "bad", 1)
    put_job(inventory, "good", 1)

    result = a_scheduler(inventory, Leaving).run_cycle()

    assert {name.split("-")[0] for name in bound(result)} == {"good"}
    assert set(said(result)) == {"bad"}


def test_a_plugin_that_ends_the_program_when_it_opens_lets_everything_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told as any plugin that cannot open."""
    monkeypatch.setattr(Leaving, "at", "open")
    inventory = an_inventory(a_node("n0"))
    put_job(inventory, "good", 1)

    result = a_scheduler(inventory, Leaving).run_cycle()

    assert not result.binds
    assert "raised SystemExit: 3" in said(result)["good"][1]

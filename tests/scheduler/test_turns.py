"""A cycle ends however many jobs cannot be placed, and none waits for ever behind them."""

from random import Random

import pytest

from spinney.runtime import InlineExecutor, Runtime
from spinney.scheduler import Plugin, PodGroupInfo, PodInfo, SchedulerConfig, Session
from spinney.scheduler.actions import allocate
from spinney.scheduler.config import PluginOption
from spinney.scheduler.cycle.scheduler import Scheduler
from spinney.scheduler.framework.plugin import PluginRegistry
from spinney.scheduler.intake.inventory import Inventory
from tests.scheduler.building import KNOWN, StandingClock, a_gang, a_node, a_pod, an_inventory, put_gang, put_job


class SlowlyTicking(StandingClock):
    """A clock that only a plugin moves."""

    seconds = 0.0

    def monotonic(self) -> float:
        """Return what the plugin has made of it."""
        return self.seconds


def a_slow_scheduler(inventory: Inventory, *, refused: str) -> Scheduler:
    """Return a scheduler that takes ten seconds for a pod and has fifteen for all jobs."""
    clock = SlowlyTicking()

    class Slow(Plugin):
        name = "slow"

        def on_session_open(self, session: Session) -> None:
            session.add_pre_predicate_fn(self._takes_long)

        def _takes_long(self, task: PodInfo, job: PodGroupInfo) -> bool:
            clock.seconds += 10.0
            return not job.name.startswith(refused)

    registry = PluginRegistry({name: KNOWN.builder(name) for name in KNOWN})
    registry.register("slow", Slow)
    config = SchedulerConfig(plugins=(*SchedulerConfig().plugins, PluginOption("slow")), allocate_seconds=15.0)
    runtime = Runtime(clock=clock, random=Random(0), executor=InlineExecutor())
    return Scheduler(config, inventory, runtime=runtime, registry=registry)


@pytest.fixture(autouse=True)
def _two_jobs_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocate, "FEWEST", 2)


def test_jobs_that_were_not_reached_come_first_in_the_next_cycle() -> None:
    """Jobs that never fit take the time of one cycle, not that of every cycle."""
    inventory = an_inventory(a_node("n"))
    for name in ("hopeless-0", "hopeless-1", "ordinary"):
        put_job(inventory, name, 1)
    scheduler = a_slow_scheduler(inventory, refused="hopeless")

    first, second = scheduler.run_cycle(), scheduler.run_cycle()

    assert first.binds == []
    said = {each.gang.name: each for each in first.unschedulable}["ordinary"]
    assert said.errors[0].reason == "OutOfTime"
    assert "it comes first in the next cycle" in said.message
    assert first.next_moment is not None
    assert [bind.gang.name for bind in second.binds] == ["ordinary"]


def test_nobody_is_evicted_for_a_job_that_was_not_tried() -> None:
    """It may fit as it is."""
    inventory = an_inventory(a_node("n", gpus=2))
    put_gang(inventory, a_gang("running", priority=10), [a_pod("running-0", gang="running", gpus=2, node="n")])
    for name in ("hopeless-0", "hopeless-1"):
        put_job(inventory, name, 1)
    put_gang(inventory, a_gang("urgent", priority=40), [a_pod("urgent-0", gang="urgent", gpus=1)])
    scheduler = a_slow_scheduler(inventory, refused="hopeless")

    assert scheduler.run_cycle().evictions == []
    assert [each.pod.name for each in scheduler.run_cycle().evictions] == ["running-0"]

"""The minruntime plugin in a session: what has just started is left alone, but for what it can spare."""

import random

import msgspec
import pytest

from spinney.api.struct import JSON
from spinney.gangs.sources.kai import SOURCE
from spinney.gangs.tree import GangKey
from spinney.runtime import InlineExecutor, Runtime
from spinney.scheduler.config import PluginOption, SchedulerConfig
from spinney.scheduler.evaluation.questions import Questions
from spinney.scheduler.framework.events import Scenario
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.plugin import PluginRegistry
from spinney.scheduler.framework.session import Session
from spinney.scheduler.plugins.minruntime import MinRuntimePlugin
from spinney.sim.cases.format import Case
from spinney.sim.cases.objects import NOW
from spinney.sim.cases.scheduling import inventory_of
from spinney.sim.engine import SteppedClock
from tests.sim.cases.builders import a_case, a_job, a_node, a_queue, a_task


def opened(
    *, started: float, minimum: int = 2, arguments: dict[str, str], rival_of: str = "queue1"
) -> tuple[Session, PodGroupInfo, PodGroupInfo]:
    """Open a session with a victim of two pods that started so many minutes ago; return it, the victim and a rival."""
    tasks: list[JSON] = [a_task(f"victim-{number}", state="Running", node="node0") for number in range(2)]
    victim = a_job("victim", tasks=tasks, minimum=minimum, started_minutes_ago=started)
    case = a_case(
        nodes=[a_node()],
        queues=[a_queue("queue0"), a_queue("queue1", rank=1)],
        jobs=[victim, a_job("rival", queue=rival_of)],
    )
    settings = SchedulerConfig.kai_compat(plugins=(PluginOption("minruntime", arguments),), actions=())
    runtime = Runtime(clock=SteppedClock(NOW), random=random.Random(0), executor=InlineExecutor())
    snapshot = inventory_of(msgspec.convert(case, Case)).snapshot()
    session = Session(snapshot, settings, PluginRegistry({"minruntime": MinRuntimePlugin}), runtime, ask=Questions)
    session.open()
    jobs = [session.job(GangKey(SOURCE, "default", name)) for name in ("victim", "rival")]
    return session, jobs[0], jobs[1]


@pytest.mark.parametrize(("started", "may"), [(1, False), (5, True)])
def test_a_gang_is_left_alone_for_its_min_runtime(started: float, may: bool) -> None:
    """A gang may be a victim of reclaim only after it has run for its min-runtime."""
    session, victim, rival = opened(started=started, arguments={"defaultReclaimMinRuntime": "5m"})
    assert session.ask.is_victim("reclaim", rival, victim) is may


def test_preempt_has_its_own_min_runtime() -> None:
    """A min-runtime for preemption protects from jobs of the same queue, not from those of others."""
    minutes = {"defaultPreemptMinRuntime": "5m"}
    session, victim, rival = opened(started=1, arguments=minutes, rival_of="queue0")
    assert not session.ask.is_victim("preempt", rival, victim)
    session, victim, rival = opened(started=1, arguments=minutes)
    assert session.ask.is_victim("reclaim", rival, victim)
    assert session.ask.is_victim("preempt", rival, victim)


@pytest.mark.parametrize(("taken", "may"), [(1, True), (2, False)])
def test_a_protected_job_may_lose_what_it_can_spare(taken: int, may: bool) -> None:
    """A protected job passes the filter if it has pods to spare, but a scenario may not break its gang."""
    session, victim, rival = opened(started=1, minimum=1, arguments={"defaultReclaimMinRuntime": "5m"})
    assert session.ask.is_victim("reclaim", rival, victim)
    statement = session.statement()
    for task in victim.tasks[:taken]:
        statement.evict(task)
    scenario = Scenario(preemptor=rival, pending=rival.tasks, victims={victim: victim.tasks[:taken]})
    assert (session.ask.scenario_refusal("reclaim", scenario) is None) is may

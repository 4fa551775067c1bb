"""The time of a search for victims is kept however many pods a single victim could give up."""

from datetime import datetime
from random import Random

import pytest

from spinney.gangs.book import GangMembers
from spinney.gangs.checkpoints import saved_until
from spinney.gangs.tree import GangKey
from spinney.runtime import InlineExecutor, Runtime
from spinney.scheduler import Plugin, PodGroupInfo, Session
from spinney.scheduler.config import PluginOption, SchedulerConfig, VictimSearchLimits
from spinney.scheduler.cycle.scheduler import Scheduler
from spinney.scheduler.framework import jobs
from spinney.scheduler.framework.plugin import PluginRegistry
from spinney.scheduler.victims.searching import OUT_OF_TIME
from tests.scheduler.building import KNOWN, NAMESPACE, StandingClock
from tests.scheduler.victims.worlds import Job, World, build, evicted, run

PODS = 2000


class MovedByPlugin(StandingClock):
    """A clock that only a plugin moves."""

    seconds = 0.0

    def monotonic(self) -> float:
        """Return what the plugin has made of it."""
        return self.seconds


def searched(*, seconds: float) -> tuple[Session, MovedByPlugin]:
    """Search for a job that needs all of an elastic gang; asking a plugin where a job stands takes a second."""
    clock = MovedByPlugin()

    class Slow(Plugin):
        name = "slow"

        def on_session_open(self, session: Session) -> None:
            session.add_job_order_key(self._key)

        def _key(self, job: PodGroupInfo) -> int:
            clock.seconds += 1
            return 0

    elastic = Job("elastic", places=("n0",) * PODS, minimum=1)
    inventory = build(World((PODS,), (("a", PODS),), (elastic, Job("urgent", gpus=PODS, priority=70))))
    registry = PluginRegistry({name: KNOWN.builder(name) for name in KNOWN})
    registry.register(Slow.name, Slow)
    config = SchedulerConfig(
        actions=("preempt",),
        explain=False,
        plugins=(*SchedulerConfig().plugins, PluginOption(Slow.name)),
        victim_search=VictimSearchLimits(action_seconds=1e6, job_seconds=seconds),
    )
    runtime = Runtime(clock=clock, random=Random(0), executor=InlineExecutor())
    scheduler = Scheduler(config, inventory, runtime=runtime, registry=registry)
    session = scheduler.open_session()
    scheduler.run_actions(session)
    return session, clock


def test_a_search_in_a_large_elastic_gang_ends_when_its_time_is_over() -> None:
    """Its pods are looked at one by one, and no more of them than there is time for; that is what the job is told."""
    session, clock = searched(seconds=30)

    assert clock.seconds < 50
    assert not session.evictions
    (report,) = session.victim_reports[GangKey("kai", NAMESPACE, "urgent")]
    assert [count.reason for count in report.rejected] == [OUT_OF_TIME]
    assert report.candidates == PODS


def test_what_an_elastic_gang_has_saved_is_not_read_again_for_each_pod_it_gives_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All its pods are gone through for that: done once for each of them, the time grows with their square."""
    asked: list[str] = []

    def counted(members: GangMembers, now: datetime) -> datetime | None:
        asked.append(members.gang.key.name)
        return saved_until(members, now)

    monkeypatch.setattr(jobs, "saved_until", counted)
    elastic = Job("elastic", places=("n0",) * 40, minimum=1)

    session = run(World((40,), (("a", 40),), (elastic, Job("urgent", gpus=40, priority=70))), "preempt")

    assert len(evicted(session)) == 40
    assert asked.count("elastic") < 5

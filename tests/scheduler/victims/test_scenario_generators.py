"""Plugins may propose victims: tried after the built-in search, and judged by the same rules."""

from collections.abc import Iterator, Sequence

from spinney.scheduler import Plugin, PodGroupInfo, PodInfo, Scenario, Session
from spinney.scheduler.config import SchedulerConfig
from tests.scheduler.building import a_scheduler
from tests.scheduler.victims.worlds import Job, World, build

WORLD = World(
    nodes=(2,),
    quotas=(("a", 2),),
    jobs=(
        Job("taker", priority=75),
        Job("low", places=("n0",)),
        Job("fixed", places=("n0",), priority=10, preemptible=False),
    ),
)
PREEMPT = SchedulerConfig(actions=("preempt",), explain=False)


class Proposing(Plugin):
    """Refuses every scenario but its own: first a wrong one, then the right one."""

    name = "proposing"
    proposals: Sequence[str] = ("fixed", "low")

    def on_session_open(self, session: Session) -> None:
        """Register generator and validator."""
        self._proposed = False
        session.add_preempt_scenario_validator_fn(self._is_mine)
        session.add_scenario_generator("by-name", self._propose)

    def _is_mine(self, scenario: Scenario) -> bool:
        return self._proposed

    def _propose(self, session: Session, job: PodGroupInfo) -> Iterator[Sequence[PodInfo]]:
        self._proposed = True
        for name in self.proposals:
            found = next(key for key in session.snapshot.gangs.gangs if key.name == name)
            yield session.job(found).tasks


class Broken(Plugin):
    """Has a generator that fails half-way."""

    name = "broken"

    def on_session_open(self, session: Session) -> None:
        """Register the generator."""
        session.add_scenario_generator("broken", self._propose)

    def _propose(self, session: Session, job: PodGroupInfo) -> Iterator[Sequence[PodInfo]]:
        yield ()
        raise RuntimeError("nothing comes to mind")


class OnlyFixed(Proposing):
    """Proposes nobody but a job that may not be a victim."""

    name = "only-fixed"
    proposals = ("fixed",)


class Halving(Plugin):
    """Proposes one pod of a gang of two."""

    name = "halving"

    def on_session_open(self, session: Session) -> None:
        """Register the generator, and refuse whatever else is found."""
        self._proposed = False
        session.add_preempt_scenario_validator_fn(lambda scenario: self._proposed)
        session.add_scenario_generator("half", self._propose)

    def _propose(self, session: Session, job: PodGroupInfo) -> Iterator[Sequence[PodInfo]]:
        self._proposed = True
        yield session.job(next(key for key in session.snapshot.gangs.gangs if key.name == "pair")).tasks[:1]


def test_a_proposal_cannot_break_a_gang() -> None:
    """A gang goes whole or not at all: half of it is not evicted, whoever proposes that."""
    world = World((2,), (("a", 2),), (Job("taker", priority=75), Job("pair", places=("n0", "n0"))))
    result = a_scheduler(build(world), Halving, config=PREEMPT).run_cycle()
    assert not result.evictions


def test_a_proposal_is_taken_when_nothing_else_will_do() -> None:
    """The victim of the plugin's scenario goes, after the built-in search found none that all agree to."""
    result = a_scheduler(build(WORLD), Broken, Proposing, config=PREEMPT).run_cycle()
    assert [eviction.gang.name for eviction in result.evictions] == ["low"]
    assert ("proposing", "scenario_generator") in result.seconds


def test_a_proposal_cannot_name_whom_no_rule_names() -> None:
    """A job that cannot be preempted is not evicted, whoever proposes it."""
    result = a_scheduler(build(WORLD), OnlyFixed, config=PREEMPT).run_cycle()
    assert not result.evictions

"""What arithmetic rules out, no scenario achieves: every set of victims is tried to prove it."""

from dataclasses import replace
from itertools import chain, combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spinney.scheduler.actions.consolidation import Consolidation
from spinney.scheduler.actions.entry import pending_jobs
from spinney.scheduler.actions.preempt import Preempt
from spinney.scheduler.actions.reclaim import Reclaim
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.cycle.scheduler import Scheduler
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.session import Session
from spinney.scheduler.victims.moving import all_have_units
from spinney.scheduler.victims.order import Step, Steps, VictimOrder
from spinney.scheduler.victims.pool import VictimPool
from spinney.scheduler.victims.returning import Returning
from spinney.scheduler.victims.room import FreedRoom
from spinney.scheduler.victims.rule import VictimRule
from spinney.scheduler.victims.searching import NO_ROOM, TOO_LITTLE, Search
from spinney.scheduler.victims.simulating import Bystanders, simulate
from tests.examples import examples
from tests.scheduler.building import a_runtime
from tests.scheduler.victims.worlds import Job, World, build, state, worlds

RULES: dict[str, VictimRule] = {"consolidation": Consolidation(), "preempt": Preempt(), "reclaim": Reclaim()}


def opened(world: World) -> Session:
    """Return an open session on a world."""
    return Scheduler(SchedulerConfig(actions=(), explain=False), build(world), runtime=a_runtime()).open_session()


def steps_for(session: Session, rule: VictimRule, job: PodGroupInfo) -> list[Step]:
    """Return everything a rule could take for a job."""
    pool = VictimPool(session)
    order = VictimOrder(
        session, pool, rule.queues(session, job, pool), lambda victim: rule.admits(session, job, victim)
    )
    return list(Steps(order))


def some_set_holds(session: Session, rule: VictimRule, job: PodGroupInfo) -> bool:
    """Try every set of whole victim jobs."""
    by_job: dict[PodGroupInfo, list[Step]] = {}
    for step in steps_for(session, rule, job):
        by_job.setdefault(step.job, []).append(step)
    tasks = list(job.tasks_to_allocate())
    bystanders = Bystanders(session, list(pending_jobs(session, recorded=False)))
    messages = dict.fromkeys(session.queues.index, "")
    session.ask.job_solution_start()
    for chosen in chain.from_iterable(combinations(by_job, size) for size in range(1, len(by_job) + 1)):
        steps = [step for victim in chosen for step in by_job[victim]]
        held = simulate(session, job, tasks, steps, bystanders=bystanders, messages=messages)
        if held is not None:
            statement, scenario = held
            just = rule.refusal(session, scenario) is None and job.gang_satisfied
            statement.discard()
            if just:
                return True
    return False


@settings(max_examples=examples(100), deadline=None)
@given(worlds(most_running=4), st.sampled_from(sorted(RULES)))
def test_what_is_ruled_out_is_impossible(world: World, name: str) -> None:
    """A job refused by arithmetic alone is not placed by any set of victims, and the proof leaves no trace."""
    session, rule = opened(world), RULES[name]
    pending = list(pending_jobs(session, recorded=False))
    for job in pending:
        if not rule.may_search(session, job):
            continue
        before = state(session)
        probe = Search(session, rule, pending)
        if probe.solve(job):
            return
        (report,) = session.victim_reports.pop(job.key)
        reasons = {each.reason for each in report.rejected}
        if reasons & {NO_ROOM, TOO_LITTLE}:
            assert not some_set_holds(session, rule, job)
        assert state(session) == before


def test_what_is_moved_needs_a_place_of_its_size() -> None:
    """A node is not emptied of a pod of 4 GPUs where four are free on as many nodes, but of one of 1 GPU it is."""
    filled = [Job(f"filler-{number}", gpus=7, places=(f"n{number}",)) for number in range(1, 5)]

    def units(gpus: int) -> bool:
        moved = Job("moved", gpus=gpus, places=("n0",))
        session = opened(World((8, 8, 8, 8, 8), (("a", 100),), (moved, *filled, Job("large", gpus=8))))
        (large,) = pending_jobs(session, recorded=False)
        steps = [step for step in steps_for(session, RULES["consolidation"], large) if step.job.key.name == "moved"]
        leaving = [task for step in steps for task in step.tasks]
        return all_have_units(session, [*large.tasks_to_allocate(), *leaving], leaving)

    assert units(1)
    assert not units(4)


@settings(max_examples=examples(100), deadline=None)
@given(worlds(most_running=4))
def test_no_scenario_without_units_moves_everybody(world: World) -> None:
    """Where units are missing, a simulation of the same scenario loses somebody or does not place the job."""
    session, rule = opened(world), RULES["consolidation"]
    pending = list(pending_jobs(session, recorded=False))
    messages = dict.fromkeys(session.queues.index, "")
    session.ask.job_solution_start()
    for job in pending:
        steps = steps_for(session, rule, job)
        tasks = list(job.tasks_to_allocate())
        for count in range(1, len(steps) + 1):
            leaving = [task for step in steps[:count] for task in step.tasks]
            if not all_have_units(session, [*tasks, *leaving], leaving):
                bystanders = Bystanders(session, pending)
                held = simulate(session, job, tasks, steps[:count], bystanders=bystanders, messages=messages)
                if held is not None:
                    assert rule.refusal(session, held[1]) is not None or not job.gang_satisfied
                    held[0].discard()


@settings(max_examples=examples(200), deadline=None)
@given(worlds(), st.booleans())
def test_who_is_said_to_return_has_its_turn_before_the_job(world: World, nested: bool) -> None:
    """In no simulation a victim is placed after the job of which the order alone said that it returns before it."""
    session, rule = opened(replace(world, departments=nested)), RULES["reclaim"]
    tried: list[PodGroupInfo] = []
    session.add_pre_job_allocation_fn(tried.append)
    pending = list(pending_jobs(session, recorded=False))
    messages = dict.fromkeys(session.queues.index, "")
    session.ask.job_solution_start()
    for job in pending:
        steps = steps_for(session, rule, job)
        tasks = list(job.tasks_to_allocate())
        bystanders = Bystanders(session, pending)
        order = Returning(session, job, bystanders.besides({job: None}))
        for scenario in chain([steps], *(combinations(steps, size) for size in (1, 2))):
            returning = {task.job for task in order.before(scenario)}
            tried.clear()
            held = simulate(session, job, tasks, scenario, bystanders=bystanders, messages=messages)
            assert returning.isdisjoint(tried[tried.index(job) :])
            if held is not None:
                held[0].discard()


@settings(max_examples=examples(100), deadline=None)
@given(worlds())
def test_room_counts_what_evicting_would_free(world: World) -> None:
    """Room after releasing steps on paper is what the ledger has after evicting them virtually."""
    session = opened(world)
    for job in pending_jobs(session, recorded=False):
        room, statement = FreedRoom.of(session), session.statement()
        for step in steps_for(session, RULES["consolidation"], job):
            room.release(step.tasks)
            for task in step.tasks:
                statement.evict(task)
        table = session.nodes.table
        assert np.array_equal(room.free, table.idle + table.releasing)
        statement.discard()


@settings(max_examples=examples(100), deadline=None)
@given(worlds())
def test_steps_give_a_job_up_from_its_edges(world: World) -> None:
    """Pods beyond the minimum go one by one; after any number of steps a job has its minimum or nothing."""
    session = opened(world)
    for job in pending_jobs(session, recorded=False):
        left = {victim: sum(victim.active(each) for each in victim.gang.pod_sets.values()) for victim in session.jobs}
        for step in steps_for(session, RULES["consolidation"], job):
            left[step.job] -= len(step.tasks)
            minimum = sum(each.min_member for each in step.job.gang.pod_sets.values())
            assert left[step.job] == 0 or left[step.job] >= minimum
            assert len(step.tasks) == 1 or left[step.job] == 0

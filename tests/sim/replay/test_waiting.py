"""Who waits under backfill: no reserved start is delayed, judged by an oracle that knows only what happened."""

from random import Random

import pytest
from msgspec.structs import replace

from spinney.scheduler.config import PluginOption, SchedulerConfig
from spinney.sim.replay import History, Job, Trace
from spinney.sim.replay.checking import problems_of
from spinney.sim.replay.history import JobHappening
from spinney.sim.replay.run_times import stating, stating_nothing
from tests.sim.replay.building import a_job, a_trace, machines, replayed, told

GPUS = 4


def backfilling(**arguments: str) -> SchedulerConfig:
    config = SchedulerConfig()
    plugins = (*config.plugins, PluginOption("backfill", arguments=arguments))
    return replace(config, plugins=plugins, actions=("allocate",))


def a_busy_trace(seed: int) -> Trace:
    """Return more jobs than three small machines hold, of one to three pods, with run times that are stated."""
    chance = Random(seed)
    moment, jobs = 0.0, []
    for number in range(18):
        moment += chance.choice((0, 0, 5, 20))
        pods = chance.choice((1, 1, 1, 2, 3))
        gpus = chance.choice((1, 2, 3, 4) if pods == 1 else (2, 4))
        jobs.append(a_job(f"j{number}", moment, gpus=gpus, pods=pods, duration=float(chance.randint(5, 120))))
    return stating(a_trace(*jobs, nodes=machines(3, gpus=GPUS)), 1.0)


def starts(history: History) -> dict[int, JobHappening]:
    return {each.job: each for each in history.events if each.what == "started"}


def earliest(trace: Trace, begun: dict[int, JobHappening], job: Job, number: int, moment: float) -> float:
    """Return when a job would start at the latest if nobody were let in after it: those that run end one by one."""
    running = [
        (each.at + (trace.jobs[other].duration or 0.0), each.nodes, trace.jobs[other].ask.gpus)
        for other, each in begun.items()
        if (each.at < moment or (each.at == moment and other < number))
        and each.at + (trace.jobs[other].duration or 0.0) > moment
    ]
    for at in [moment, *sorted(end for end, _, _ in running)]:
        free = {machine.name: GPUS for machine in trace.machines}
        for end, nodes, gpus in running:
            for node in nodes if end > at else ():
                free[node] -= gpus
        if sum(room // job.ask.gpus for room in free.values()) >= job.pods:
            return at
    raise AssertionError("an empty cluster holds every job of these traces")


@pytest.mark.parametrize("seed", range(12))
def test_the_first_that_waits_is_never_delayed_by_those_behind_it(seed: int) -> None:
    """From when all before it have started, a job waits for nobody but those who run then."""
    trace = a_busy_trace(seed)
    history = replayed(trace, backfilling())
    begun = starts(history)
    assert problems_of(trace, history) == []
    for number, job in enumerate(trace.jobs):
        first = max([job.submitted, *(begun[other].at for other in range(number))])
        assert begun[number].at <= earliest(trace, begun, job, number, first), job.name


def test_somebody_passes() -> None:
    """The guarantee costs little: jobs that end in time are let in before those that wait."""
    passed = 0
    for seed in range(5):
        trace = a_busy_trace(seed)
        begun = starts(replayed(trace, backfilling()))
        order = [each.job for each in sorted(begun.values(), key=lambda each: each.at)]
        passed += order != sorted(order)
    assert passed >= 3


def test_a_gang_starts_as_if_nobody_had_passed() -> None:
    """Short jobs use the gap before a gang's place is free; a long one starts after the gang."""
    trace = stating(
        a_trace(
            a_job("running", 0, gpus=4, duration=100),
            a_job("gang", 1, gpus=8, pods=2, duration=10),
            a_job("long", 2, gpus=4, duration=200),
            a_job("short", 3, gpus=4, duration=50),
        ),
        1.0,
    )
    began = {name: at for at, what, name in told(trace, replayed(trace, backfilling())) if what == "started"}
    assert began == {"running": 0, "short": 3, "gang": 100, "long": 110}


def test_without_run_times_a_gang_waits_no_longer_than_it_takes_to_age() -> None:
    """A stream of small jobs that would starve a gang for ever is held off once the gang has aged."""
    stream = [a_job(f"s{number}", 10.0 * number, gpus=8, duration=15) for number in range(100)]
    trace = stating_nothing(a_trace(*stream, a_job("gang", 5, gpus=8, pods=2, duration=10)))
    begins = {
        name: at
        for at, what, name in told(trace, replayed(trace, backfilling(agingSeconds="200")))[::-1]
        if what == "started"
    }
    starving = {
        name: at
        for at, what, name in told(trace, replayed(trace, SchedulerConfig(actions=("allocate",))))
        if what == "started"
    }
    assert begins["gang"] <= 5 + 200 + 30 < starving["gang"]


def test_a_pod_that_needs_a_whole_node_is_not_starved_by_smaller_ones() -> None:
    """Single pods are given no place with minPods 2, but the node is kept from smaller ones once one has aged."""
    stream = [a_job(f"s{number}", 100.0 * number, gpus=2, duration=150) for number in range(80)]
    trace = stating_nothing(a_trace(*stream, a_job("whole", 5, gpus=4, duration=10), nodes=machines(1, gpus=GPUS)))

    def started(aging: str) -> float:
        events = told(trace, replayed(trace, backfilling(minPods="2", shortestFirst="true", agingSeconds=aging)))
        return next(at for at, what, name in events if what == "started" and name == "whole")

    assert started("10") < 3600
    assert started("100000") > 7900, "the stream has ended"


def test_the_rest_of_a_sweep_is_expected_to_run_as_long_as_those_that_have_ended() -> None:
    """Of two sweeps that wait, the rest of the one whose first ended soon goes first, though it came later."""
    long = [a_job(f"long{number}", 0.0, gpus=4, duration=10_000) for number in range(3)]
    short = [a_job(f"short{number}", 200.0, gpus=4, duration=20) for number in range(3)]
    trace = stating_nothing(a_trace(*long, *short, nodes=machines(1, gpus=GPUS)))
    config = backfilling(minPods="2", shortestFirst="true")
    order = [name for _, what, name in told(trace, replayed(trace, config)) if what == "started"]
    assert order == ["long0", "short0", "short1", "short2", "long1", "long2"]

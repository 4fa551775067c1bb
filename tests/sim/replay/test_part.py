"""A replay: jobs arrive, wait, run for their time and end, and begin anew when they lose their place."""

from dataclasses import replace

import pytest

from spinney.scheduler.config import PluginOption, SchedulerConfig
from spinney.sim.replay import Ask, Job, Outage
from spinney.sim.replay.checking import problems_of
from tests.sim.replay.building import a_job, a_trace, machines, replayed, told


def test_a_job_runs_for_its_time_from_when_there_is_room() -> None:
    """A job that finds no room starts when another ends, and runs for its whole duration from then on."""
    trace = a_trace(a_job("first", 0, gpus=8, duration=50), a_job("second", 10, gpus=8, duration=30), nodes=machines(1))

    history = replayed(trace)

    assert told(trace, history) == [
        (0, "started", "first"),
        (50, "ended", "first"),
        (50, "started", "second"),
        (80, "ended", "second"),
    ]


def test_a_gang_starts_as_a_whole() -> None:
    """Two pods of eight GPUs wait until two nodes are free, and start together."""
    trace = a_trace(a_job("small", 0, gpus=1, duration=40), a_job("gang", 1, gpus=8, pods=2, duration=10))

    history = replayed(trace)

    assert told(trace, history)[1:] == [(40, "ended", "small"), (40, "started", "gang"), (50, "ended", "gang")]
    assert problems_of(trace, history) == []


def test_a_failing_node_makes_its_jobs_begin_anew() -> None:
    """What ran on the node starts over elsewhere, and the node takes jobs again once it is back."""
    trace = a_trace(
        a_job("job", 0, gpus=8, duration=100), nodes=machines(1), outages=(Outage("n0", begins=30, ends=60),)
    )

    history = replayed(trace)

    assert told(trace, history) == [
        (0, "started", "job"),
        (30, "failed", "job"),
        (60, "started", "job"),
        (160, "ended", "job"),
    ]


@pytest.mark.parametrize(
    ("second", "back"), [(Outage("n0", 40), None), (Outage("n0", 40, 90), 90), (Outage("n0", 40, 50), 60)]
)
def test_a_node_is_back_when_the_last_outage_of_it_is_over(second: Outage, back: int | None) -> None:
    """Outages that overlap are one: a node that was to be gone for good came back when the first one ended."""
    outages = (Outage("n0", 30, 60), second, Outage("n0", 10, 10))
    trace = a_trace(a_job("job", 0, gpus=8, duration=100), nodes=machines(1), outages=outages)

    history = replayed(trace)

    again = [(back, "started", "job"), (back + 100, "ended", "job")] if back is not None else []
    assert told(trace, history) == [(0, "started", "job"), (30, "failed", "job"), *again]


def test_a_closed_node_takes_no_new_jobs() -> None:
    """What runs on it goes on; what comes then waits until it is open, also where it failed and came back meanwhile."""
    first, second = a_job("first", 0, gpus=4, duration=50), a_job("second", 20, gpus=4, duration=10)
    trace = replace(a_trace(first, second, nodes=machines(1)), closures=(Outage("n0", 10, 90),))
    failing = replace(trace, outages=(Outage("n0", 30, 60),))

    assert told(trace, replayed(trace)) == [
        (0, "started", "first"),
        (50, "ended", "first"),
        (90, "started", "second"),
        (100, "ended", "second"),
    ]
    assert [when for when, what, _ in told(failing, replayed(failing)) if what == "started"] == [0, 90, 90]
    assert problems_of(failing, replayed(failing)) == []


def test_a_job_that_was_evicted_begins_anew() -> None:
    """A queue that is guaranteed a node takes it back; whoever was there runs again from the beginning, later."""
    greedy = [a_job(f"greedy-{number}", 0, gpus=8, duration=100, queue="greedy") for number in range(2)]
    owner = a_job("owner", 10, gpus=8, duration=20, queue="owner")
    trace = replace(a_trace(*greedy, owner), quotas={"greedy": 8, "owner": 8})

    history = replayed(trace)
    events = told(trace, history)

    (evicted,) = [name for _, what, name in events if what == "evicted"]
    assert (10, "started", "owner") in events
    assert (30, "started", evicted) in events
    assert (130, "ended", evicted) in events
    assert problems_of(trace, history) == []


def test_a_minimum_run_time_holds_from_the_start_of_a_job() -> None:
    """A queue takes its node back when what runs there has had its minimum run time, not before."""
    greedy = [a_job(f"greedy-{number}", 0, gpus=8, duration=100, queue="greedy") for number in range(2)]
    owner = a_job("owner", 10, gpus=8, duration=20, queue="owner")
    trace = replace(a_trace(*greedy, owner), quotas={"greedy": 8, "owner": 8})
    protection = PluginOption("minruntime", {"defaultReclaimMinRuntime": "60s"})
    plugins = [each for each in SchedulerConfig().plugins if each.name != "minruntime"]

    history = replayed(trace, SchedulerConfig(plugins=(*plugins, protection)))

    assert (60, "started", "owner") in told(trace, history)


def test_who_is_offered_once_is_forgotten() -> None:
    """A pod without room when it comes is gone, though room comes later."""
    trace = replace(
        a_trace(a_job("first", 0, gpus=8, duration=5), a_job("second", 1, gpus=8), nodes=machines(1)), offered_once=True
    )

    history = replayed(trace)

    assert [what for _, what, name in told(trace, history) if name == "second"] == ["forgotten"]


def test_an_instance_ends_when_the_trace_says() -> None:
    """An end at a given time holds whether the instance runs by then or still waits."""
    trace = a_trace(Job("first", 0, Ask(gpus=8), ends=50), Job("late", 10, Ask(gpus=8), ends=40), nodes=machines(1))

    assert told(trace, replayed(trace)) == [(0, "started", "first"), (40, "forgotten", "late"), (50, "ended", "first")]


def test_who_waits_is_tried_after_each_end_that_the_trace_gives() -> None:
    """Of instances that end at one moment each makes room at once, even for one that waits and ends then too."""
    trace = a_trace(
        Job("first", 0, Ask(gpus=4), ends=50),
        Job("second", 0, Ask(gpus=4), ends=50),
        Job("late", 10, Ask(gpus=4), ends=50),
        Job("later", 20, Ask(gpus=8), ends=90),
        nodes=machines(1),
    )
    assert told(trace, replayed(trace)) == [
        (0, "started", "first"),
        (0, "started", "second"),
        (50, "ended", "first"),
        (50, "started", "late"),
        (50, "ended", "second"),
        (50, "ended", "late"),
        (50, "started", "later"),
        (90, "ended", "later"),
    ]


def test_a_node_holds_no_more_of_an_application_than_it_may() -> None:
    """With at most two of an application on a node, five need three nodes though one has room for all."""
    ask = Ask(gpus=1, most_per_node=2)
    jobs = [Job(f"i{number}", 0, ask, application="app") for number in range(5)]
    trace = a_trace(*jobs, nodes=machines(3))

    history = replayed(trace)
    used = [each.nodes[0] for each in history.events if each.what == "started"]

    assert sorted(used.count(node) for node in set(used)) == [1, 2, 2]
    assert problems_of(trace, history) == []


def test_the_same_seed_gives_the_same_history() -> None:
    """Two replays of one trace do not differ in anything that happened."""
    jobs = [a_job(f"j{number}", number % 7, gpus=1 + number % 5, duration=20 + number) for number in range(40)]
    trace = a_trace(*jobs)

    assert replayed(trace, seed=3).events == replayed(trace, seed=3).events


def test_how_many_arrive_at_once_changes_no_decision() -> None:
    """Pods that are offered once go to the same nodes whether they come one by one or all at the same moment."""
    asks = [Ask(cpu=4000, gpus=1, milli=[470, 810, 320, 1000, 160][number % 5]) for number in range(60)]
    each = [Job(f"p{number}", float(number), ask) for number, ask in enumerate(asks)]
    whole = [Job(f"p{number}", 0.0, ask) for number, ask in enumerate(asks)]

    def places(jobs: list[Job]) -> list[tuple[int, tuple[str, ...]]]:
        trace = replace(a_trace(*jobs, nodes=machines(3, gpus=4, cpu=48_000)), offered_once=True)
        history = replayed(trace)
        assert problems_of(trace, history) == []
        return [(event.job, event.nodes) for event in history.events if event.what == "started"]

    assert places(each) == places(whole)

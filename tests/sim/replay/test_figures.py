"""The figures of a replay, on histories small enough to do in one's head."""

from dataclasses import replace

import pytest

from spinney.sim.replay import Ask, Job, Machine, Outage, Trace
from spinney.sim.replay.comparing import Estimate, ReplayRun, figure_lines, group_lines
from spinney.sim.replay.figures import figures_of
from spinney.sim.replay.fragmentation import FreeSpace, fragmentation
from tests.sim.replay.building import a_job, a_trace, machines, replayed


def test_wait_completion_and_use() -> None:
    """Waits count from submission, use is GPU seconds over those there, sizes are told apart."""
    trace = a_trace(
        a_job("first", 0, gpus=8, duration=50, queue="a"),
        a_job("second", 10, gpus=4, duration=30, queue="b"),
        nodes=machines(1),
    )
    found = figures_of(replace(trace, window=(0.0, 80.0)), replayed(trace))

    assert found.by_queue["b"].wait.mean == 40
    assert found.by_queue["b"].completion.mean == 70
    assert found.by_size["5-8 GPUs"].wait.mean == 0
    assert found.used == pytest.approx(100 * (8 * 50 + 4 * 30) / (8 * 80))
    assert (found.jobs, found.started, found.waited, found.evictions) == (2, 2, 1, 0)


def test_lost_hours_are_those_that_were_undone() -> None:
    """An eviction after ten seconds on eight GPUs loses 80 GPU seconds."""
    greedy = [a_job(f"greedy-{number}", 0, gpus=8, duration=100, queue="greedy") for number in range(2)]
    trace = replace(a_trace(*greedy, a_job("owner", 10, gpus=8, queue="owner")), quotas={"greedy": 8, "owner": 8})
    found = figures_of(trace, replayed(trace))

    assert found.evictions == 1
    assert found.lost_gpu_hours == pytest.approx(80 / 3600)


def test_evictions_are_called_what_they_are() -> None:
    """They count each time a job was evicted: they stood as jobs that were."""
    trace = a_trace(a_job("job", 0))
    shown = {line.name for line in figure_lines([ReplayRun("default", None, figures_of(trace, replayed(trace)))])}

    assert {"evictions", "job failures by nodes"} <= shown
    assert "jobs evicted" not in shown


def test_allocation_is_that_of_placed_pods() -> None:
    """Three shares of 0.6 on two GPUs: two are placed, so 60 % are given out."""
    jobs = tuple(Job(f"j{number}", 0.0, Ask(gpus=1, milli=600)) for number in range(3))
    trace = Trace("test", machines(1, gpus=2), jobs, offered_once=True)
    found = figures_of(trace, replayed(trace))

    assert found.allocated == pytest.approx(60)
    assert found.arrived[-1].x == pytest.approx(90)
    assert found.fragmentation == pytest.approx(40)


def test_machines_without_gpus_have_figures_too() -> None:
    """A trace of CPU machines is told in nodes and waits; it has no GPUs to lose."""
    trace = a_trace(a_job("j", 0.0, gpus=0), nodes=machines(2, gpus=0))
    found = figures_of(trace, replayed(trace))
    assert (found.started, found.most_nodes_in_use, found.fragmentation, found.allocated) == (1, 1, 0.0, 0.0)


def test_fragmentation_as_defined() -> None:
    """What a pod without GPUs, a missing model, too little CPU, or too small a rest makes useless is counted."""
    space = FreeSpace.empty((Machine("a", 8000, 0, 2, model="T4"), Machine("b", 1000, 0, 1, model="V100")))
    space.take(0, Ask(gpus=1, milli=700), (0,))  # 300 and 1000 free on a, 1000 on b

    assert fragmentation(space, [(Ask(cpu=1), 1)]) == pytest.approx(2.3)
    assert fragmentation(space, [(Ask(gpus=1, milli=500), 1)]) == pytest.approx(0.3)
    assert fragmentation(space, [(Ask(cpu=4000, gpus=1, milli=500), 1)]) == pytest.approx(1.3)
    assert fragmentation(space, [(Ask(gpus=1, milli=200, models=frozenset({"V100"})), 1)]) == pytest.approx(1.3)
    assert fragmentation(space, [(Ask(gpus=2), 1), (Ask(gpus=1, milli=300), 3)]) == pytest.approx(2.3 / 4)


def test_confidence_over_seeds() -> None:
    """Two values have the margin of Student's distribution with one degree of freedom; one value has none."""
    two = Estimate.of([1.0, 3.0])

    assert two.mean == 2
    assert two.margin == pytest.approx(12.706)
    assert str(Estimate.of([2.5])) == "2.50"


def test_all_jobs_of_a_group_are_counted() -> None:
    """Jobs that run on when the recording ends, and jobs that were undone for good, are jobs; the first have waits."""
    jobs = (
        a_job("done", 0, gpus=8, duration=100),
        a_job("runs on", 10, gpus=8, duration=None),
        a_job("undone", 0, gpus=8, duration=1000),
    )
    trace = a_trace(*jobs, outages=(Outage("n0", 500), Outage("n1", 500)))
    found = figures_of(trace, replayed(trace)).everybody

    assert (found.jobs, found.never_started) == (3, 0)
    assert (found.wait.jobs, found.wait.longest) == (2, 90)
    assert (found.completion.jobs, found.slowdown) == (1, 1)


def test_where_nothing_finished_nothing_is_said_of_it() -> None:
    """A policy under which nobody runs is not the fairest: it had a slowdown and a fairness of 1."""
    trace = a_trace(a_job("too large", 0, gpus=8, pods=3, queue="a"), a_job("too", 0, gpus=8, pods=3, queue="b"))
    found = figures_of(trace, replayed(trace))
    runs = [ReplayRun("default", None, found)]

    assert (found.fairness, found.everybody.slowdown) == (None, None)
    shown = {line.name: str(line.estimates["default"]) for line in figure_lines(runs)}
    assert (shown["fairness between queues (1 is best)"], shown["slowdown, mean"]) == ("-", "-")
    line = next(iter(group_lines(runs, lambda figures: figures.by_queue)))
    assert [str(each) for each in line.estimates] == ["1", "1", "-", "-", "-", "-", "-", "-", "-"]


def test_a_job_that_was_withdrawn_no_longer_waits() -> None:
    """The curve of jobs that wait falls when one gives up, not only when something else happens after it."""
    long, withdrawn = a_job("long", 0, gpus=8, duration=1000), a_job("too late", 10, gpus=8, duration=None, ends=500)
    trace = a_trace(long, withdrawn, nodes=machines(1))

    curve = figures_of(trace, replayed(trace)).waiting
    assert max(point.x for point in curve if point.y) == pytest.approx(500 / 3600, abs=0.002)


def test_what_a_failed_node_has_is_not_free() -> None:
    """GPUs of a node that is away count neither as unallocated nor as lost to fragmentation."""
    jobs = (a_job("first", 0, gpus=8, duration=None), a_job("too large", 100, gpus=8, pods=3, duration=None))
    trace = a_trace(*jobs, nodes=machines(3), outages=(Outage("n2", 50),))
    found = figures_of(trace, replayed(trace))

    assert found.unallocated_gpus == 8
    assert found.allocated == pytest.approx(100 / 3)


def test_confidence_over_many_seeds() -> None:
    """Eleven seeds have the margin of Student's distribution, too: it was that of the normal one, an eighth less."""
    eleven = Estimate.of([float(value) for value in range(11)])

    assert eleven.margin == pytest.approx(2.228, rel=1e-3)

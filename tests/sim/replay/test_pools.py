"""Pools that have nothing to do with each other are replayed apart, and told as one story."""

import subprocess
from dataclasses import replace
from typing import Any

import pytest

from spinney.sim.replay import Job, Machine, Progress, Trace
from spinney.sim.replay.checking import problems_of
from spinney.sim.replay.pools import parts_of
from tests.sim.replay.building import a_job, a_trace, machines, replayed, told


def in_pool(pool: str, job: Job) -> Job:
    """Return a job that is bound to a pool, in a queue of that name."""
    return replace(job, ask=replace(job.ask, pool=pool), queue=pool)


def two_pools() -> tuple[Machine, ...]:
    """Return two machines, each a pool of its own."""
    return tuple(replace(machine, pool=pool) for machine, pool in zip(machines(2), ("left", "right"), strict=True))


def a_pooled_trace() -> Trace:
    """Return a trace in which one job has to wait in each pool."""
    jobs = (
        in_pool("left", a_job("a", 0.0, gpus=8, duration=100.0)),
        in_pool("right", a_job("b", 0.0, gpus=8, duration=50.0)),
        in_pool("left", a_job("c", 10.0, gpus=8, duration=10.0)),
        in_pool("right", a_job("d", 20.0, gpus=8, duration=10.0)),
    )
    return a_trace(*jobs, nodes=two_pools())


def test_what_happens_in_pools_is_told_in_the_order_of_time() -> None:
    """Jobs keep their names and places, whichever pool they ran in."""
    trace = a_pooled_trace()
    assert len(parts_of(trace)) == 2
    history = replayed(trace)
    assert not problems_of(trace, history)
    assert told(trace, history) == [
        (0.0, "started", "a"),
        (0.0, "started", "b"),
        (50.0, "ended", "b"),
        (50.0, "started", "d"),
        (60.0, "ended", "d"),
        (100.0, "ended", "a"),
        (100.0, "started", "c"),
        (110.0, "ended", "c"),
    ]
    assert history.ended_at == 110.0


def test_progress_counts_the_jobs_of_all_pools() -> None:
    """How far a replay is does not begin anew with each pool."""
    seen: list[Progress] = []
    replayed(a_pooled_trace(), progress=seen.append)
    assert [each.submitted for each in seen] == sorted(each.submitted for each in seen)
    assert (seen[-1].submitted, seen[-1].jobs) == (4, 4)


def test_a_queue_with_jobs_in_two_pools_keeps_them_together() -> None:
    """What a queue holds in one pool counts for its share in the other, so one scheduler decides about both."""
    trace = a_pooled_trace()
    shared = trace.with_jobs(tuple(replace(job, queue="team") for job in trace.jobs))
    assert [part.trace for part in parts_of(shared)] == [shared]


def test_a_job_that_may_go_anywhere_keeps_pools_together() -> None:
    """Whoever competes for the machines of several pools makes them one cluster."""
    trace = a_pooled_trace()
    free = trace.with_jobs((*trace.jobs, a_job("anywhere", 30.0)))
    assert [part.trace for part in parts_of(free)] == [free]


def test_processes_change_nothing_but_the_time() -> None:
    """Pools that are replayed at once, in processes of their own, come to the same."""
    trace = a_pooled_trace()
    seen: list[Progress] = []
    alone, together = replayed(trace), replayed(trace, processes=2, progress=seen.append)
    assert together.events == alone.events
    assert (together.decided, together.ended_at) == (alone.decided, alone.ended_at)


def test_an_interrupted_replay_ends_its_processes(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C ends those that run, silently, and begins no other, however many pools are left."""
    started: list[subprocess.Popen[bytes]] = []
    begin = subprocess.Popen

    def counted(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(begin(*arguments, **options))
        return started[-1]

    def interrupted(_: Progress) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "Popen", counted)
    pools = [f"pool-{number}" for number in range(12)]
    nodes = tuple(replace(machine, pool=pool) for machine, pool in zip(machines(12), pools, strict=True))
    jobs = (in_pool(pool, a_job(f"{pool}-{number}", float(number))) for pool in pools for number in range(50))

    with pytest.raises(KeyboardInterrupt):
        replayed(a_trace(*jobs, nodes=nodes), processes=2, progress=interrupted)

    assert len(started) < len(pools)
    assert all(process.returncode is not None for process in started)
    assert capfd.readouterr().err == ""

"""Small traces: say what matters, get a replay of it."""

import time

from spinney.scheduler.config import SchedulerConfig
from spinney.sim.replay import Ask, History, Job, Machine, Outage, Replay, Trace
from spinney.sim.replay.part import suited


def machines(count: int, *, gpus: int = 8, cpu: int = 64_000, **others: object) -> tuple[Machine, ...]:
    """Return equal machines n0, n1, ..."""
    return tuple(Machine(f"n{number}", cpu, 262_144, gpus, **others) for number in range(count))  # type: ignore[arg-type]


def a_job(name: str, at: float, *, gpus: int = 1, pods: int = 1, duration: float | None = 100.0, **job: object) -> Job:
    """Return a job of whole GPUs."""
    return Job(name, at, Ask(cpu=1000, memory=1024, gpus=gpus), pods=pods, duration=duration, **job)  # type: ignore[arg-type]


def a_trace(*jobs: Job, nodes: tuple[Machine, ...] | None = None, outages: tuple[Outage, ...] = ()) -> Trace:
    """Return a trace on two machines of eight GPUs unless told otherwise."""
    return Trace("test", nodes if nodes is not None else machines(2), jobs, outages)


def replayed(trace: Trace, config: SchedulerConfig | None = None, **options: object) -> History:
    """Replay a trace with the default configuration unless told otherwise."""
    chosen = suited(config if config is not None else SchedulerConfig(), trace)
    return Replay(trace, chosen, stopwatch=time.process_time, **options).run()  # type: ignore[arg-type]


def told(trace: Trace, history: History) -> list[tuple[float, str, str]]:
    """Return what happened as (when, what, to whom), submissions left out."""
    return [(each.at, each.what, trace.jobs[each.job].name) for each in history.events if each.what != "submitted"]

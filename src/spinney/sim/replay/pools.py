"""A replay of a whole trace: pools that share neither jobs nor queues have a scheduler each.

Where every job is bound to one pool of machines, and every queue has jobs in one pool only, nothing that happens in one
pool can matter in another. So each is scheduled by itself, as node pools are in a cluster, and a job that waits in one
is not looked at again for whatever happens in the others. All other traces are one part.

Parts may be replayed in several processes at once; what is decided is the same.
"""

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace

from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.framework.plugin import PluginRegistry
from spinney.sim.replay.apart import replay_apart
from spinney.sim.replay.history import History, JobHappening
from spinney.sim.replay.part import PartReplay, Progress
from spinney.sim.replay.trace import Trace


@dataclass(frozen=True)
class TracePart:
    """A part of a trace that has nothing to do with the others."""

    trace: Trace
    jobs: tuple[int, ...]
    """The place of each of its jobs in the whole trace."""


@dataclass(frozen=True)
class Replay:
    """One replay of one trace under one configuration; run once.

    ``processes`` is how many parts may be replayed at once, each measured in processor seconds of its own process. A
    ``registry`` keeps all in this process: what was registered here is not known to others.
    """

    trace: Trace
    config: SchedulerConfig
    _: KW_ONLY
    stopwatch: Callable[[], float]
    registry: PluginRegistry | None = None
    seed: int = 0
    every: float = 0.0
    progress: Callable[[Progress], None] = lambda progress: None
    processes: int = 1

    def run(self) -> History:
        """Replay every part to its end."""
        parts = parts_of(self.trace)
        if self.registry is None and min(self.processes, len(parts)) > 1:
            traces = [part.trace for part in parts]
            options = {"seed": self.seed, "every": self.every}
            return _merged(parts, replay_apart(traces, self.config, options, self.processes, self.progress))
        found: list[History] = []
        done = 0
        for part in parts:
            found.append(self._part(part.trace, done))
            done += len(part.jobs)
        return found[0] if len(found) == 1 else _merged(parts, found)

    def _part(self, trace: Trace, done: int) -> History:
        """Replay a part, when so many jobs were in the parts before it."""
        jobs = len(self.trace.jobs)
        return PartReplay(
            trace,
            self.config,
            stopwatch=self.stopwatch,
            registry=self.registry,
            seed=self.seed,
            every=self.every,
            progress=lambda now: self.progress(now._replace(submitted=now.submitted + done, jobs=jobs)),
        ).run()


def parts_of(trace: Trace) -> list[TracePart]:
    """Return the pools of a trace if they have nothing to do with each other, else the whole as one part."""
    whole = [TracePart(trace, tuple(range(len(trace.jobs))))]
    numbers: dict[str, list[int]] = {}
    pool_of: dict[str, str] = {}
    for number, job in enumerate(trace.jobs):
        pool = job.ask.pool
        if not pool or pool_of.setdefault(job.queue, pool) != pool:
            return whole
        numbers.setdefault(pool, []).append(number)
    if len(numbers) < 2:
        return whole
    return [TracePart(_pool(trace, pool, jobs, pool_of), tuple(jobs)) for pool, jobs in numbers.items()]


def _pool(trace: Trace, pool: str, jobs: list[int], pool_of: dict[str, str]) -> Trace:
    machines = tuple(machine for machine in trace.machines if machine.pool == pool)
    names = {machine.name for machine in machines}
    return replace(
        trace,
        machines=machines,
        jobs=tuple(trace.jobs[number] for number in jobs),
        outages=tuple(outage for outage in trace.outages if outage.machine in names),
        closures=tuple(closure for closure in trace.closures if closure.machine in names),
        quotas={queue: gpus for queue, gpus in trace.quotas.items() if pool_of.get(queue) == pool},
    )


def _merged(parts: Sequence[TracePart], found: Sequence[History]) -> History:
    """Return what happened in all parts, in the order of time."""
    events = (_events(part, history) for part, history in zip(parts, found, strict=True))
    return History(
        events=list(heapq.merge(*events, key=lambda event: event.at)),
        decided=sum(history.decided for history in found),
        cycle_seconds=[seconds for history in found for seconds in history.cycle_seconds],
        seconds=sum(history.seconds for history in found),
        ended_at=max(history.ended_at for history in found),
    )


def _events(part: TracePart, history: History) -> Iterator[JobHappening]:
    return (event._replace(job=part.jobs[event.job]) for event in history.events)

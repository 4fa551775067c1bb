"""The anchors of Philly's experiments: a small event simulator with best-fit packing, which knows nothing of Spinney.

``fifo`` is strict order of submission; ``skip`` lets what fits pass what does not; ``easy`` is EASY backfill with run
times known: the first that does not fit has a place reserved, and others pass only if they end before, or fit beside.
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from spinney.sim.replay.trace import Job, Trace

Policy = Literal["fifo", "skip", "easy"]


@dataclass(frozen=True)
class _Reserved:
    """When the first that waits starts, on which nodes, and what is left on them then."""

    at: float
    left: dict[int, int]


def waits(trace: Trace, policy: Policy) -> list[float]:
    """Return how long each job of a trace waits; pools are simulated one by one."""
    found = [0.0] * len(trace.jobs)
    for pool in dict.fromkeys(machine.pool for machine in trace.machines):
        free = [machine.gpus for machine in trace.machines if machine.pool == pool]
        jobs = {number: job for number, job in enumerate(trace.jobs) if job.ask.pool == pool}
        for number, start in _Pool(free, jobs, policy).run().items():
            found[number] = start - jobs[number].submitted
    return found


class _Pool:
    """Equal nodes and the jobs for them. Mutable."""

    def __init__(self, free: list[int], jobs: Mapping[int, Job], policy: Policy) -> None:
        self._free, self._jobs, self._policy = free, jobs, policy
        self._running: dict[int, tuple[float, Sequence[int]]] = {}
        self._starts: dict[int, float] = {}

    def run(self) -> dict[int, float]:
        """Return when each job starts."""
        events = [(job.submitted, 1, number) for number, job in self._jobs.items()]
        heapq.heapify(events)
        waiting: dict[int, None] = {}
        while events:
            now = events[0][0]
            while events and events[0][0] == now:
                _, submitted, number = heapq.heappop(events)
                if submitted:
                    waiting[number] = None
                else:
                    for node in self._running.pop(number)[1]:
                        self._free[node] += self._jobs[number].ask.gpus
            for number in self._startable(sorted(waiting), now):
                del waiting[number]
                heapq.heappush(events, (self._running[number][0], 0, number))
        return self._starts

    def _startable(self, waiting: Sequence[int], now: float) -> Sequence[int]:
        """Start what may start, in order; return it."""
        started: list[int] = []
        reserved: _Reserved | None = None
        refused: set[tuple[int, int, bool]] = set()
        for number in waiting:
            job = self._jobs[number]
            ends = now + (job.duration or 0.0)
            short = reserved is not None and ends <= reserved.at
            kind = (job.ask.gpus, job.pods, short)
            if kind in refused:
                continue
            left = reserved.left if reserved is not None and not short else {}
            nodes = _best_fit(self._free, job, left)
            if nodes is None:
                if self._policy == "fifo":
                    break
                if self._policy == "easy" and reserved is None:
                    reserved = self._reserve(job)
                refused.add(kind)
                continue
            for node in nodes:
                self._free[node] -= job.ask.gpus
                if node in left:
                    left[node] -= job.ask.gpus
            self._running[number], self._starts[number] = (ends, nodes), now
            started.append(number)
        return started

    def _reserve(self, job: Job) -> _Reserved | None:
        free = list(self._free)
        ends = sorted((end, number) for number, (end, _) in self._running.items())
        for place, (end, number) in enumerate(ends):
            for node in self._running[number][1]:
                free[node] += self._jobs[number].ask.gpus
            if place + 1 < len(ends) and ends[place + 1][0] == end:
                continue
            nodes = _best_fit(free, job, {})
            if nodes is not None:
                for node in nodes:
                    free[node] -= job.ask.gpus
                return _Reserved(end, {node: free[node] for node in nodes})
        return None


def _best_fit(free: Sequence[int], job: Job, left: Mapping[int, int]) -> list[int] | None:
    """Return the fullest nodes that take the pods of a job; on nodes of ``left`` no more than that."""
    asked, taken, nodes = job.ask.gpus, dict.fromkeys(range(0), 0), []
    for _ in range(job.pods):
        best, least = -1, 1 << 30
        for node, room in enumerate(free):
            here = room - taken.get(node, 0)
            if asked <= here < least and asked <= left.get(node, asked):
                best, least = node, here
        if best < 0:
            return None
        taken[best] = taken.get(best, 0) + asked
        nodes.append(best)
    return nodes

"""Shortest remaining first, with preemption and migration that cost nothing: the anchor that nobody can reach.

Whenever somebody has no room, all jobs, those that run and those that wait, are laid out anew on empty nodes, those
with the least left to run first; whoever finds no room then waits. Nodes are alike.
"""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass

from spinney.sim.replay.trace import Job, Trace


def srtf_waits(trace: Trace) -> list[float]:
    """Return how long each job of a trace waits: what its completion took beyond its duration."""
    found = [0.0] * len(trace.jobs)
    for pool in dict.fromkeys(machine.pool for machine in trace.machines):
        sizes = [machine.gpus for machine in trace.machines if machine.pool == pool]
        jobs = {number: job for number, job in enumerate(trace.jobs) if job.ask.pool == pool}
        for number, end in _Pool(len(sizes), max(sizes), jobs).run().items():
            job = jobs[number]
            found[number] = end - job.submitted - (job.duration or 0.0)
    return found


@dataclass(slots=True)
class _Part:
    """What is left of a job when it was last looked at, and the levels of its nodes. Mutable."""

    left: float
    nodes: list[int]
    running_since: float | None = None


class _Pool:
    """Nodes by how many GPUs are free on each, and jobs. Mutable."""

    def __init__(self, nodes: int, gpus: int, jobs: Mapping[int, Job]) -> None:
        self._count, self._gpus, self._jobs = nodes, gpus, jobs
        self._parts: dict[int, _Part] = {}
        self._clear()

    def run(self) -> dict[int, float]:
        """Return when each job ends."""
        arrivals = [(job.submitted, number) for number, job in self._jobs.items()]
        heapq.heapify(arrivals)
        ends: dict[int, float] = {}
        due: list[tuple[float, int]] = []
        while arrivals or due:
            now = min(queue[0][0] for queue in (arrivals, due) if queue)
            while due and due[0][0] <= now:
                end, number = heapq.heappop(due)
                part = self._parts.get(number)
                if part is None or part.running_since is None or part.running_since + part.left > end + 1e-6:
                    continue  # it was interrupted since
                ends[number] = end
                self._give_back(number, self._parts.pop(number))
            while arrivals and arrivals[0][0] <= now:
                _, number = heapq.heappop(arrivals)
                self._parts[number] = _Part(self._jobs[number].duration or 0.0, [])
            for number in self._lay_out(now):
                heapq.heappush(due, (now + self._parts[number].left, number))
        return ends

    def _lay_out(self, now: float) -> list[int]:
        """Have everybody run who may; return those who have started."""
        waiting = sorted((part.left, number) for number, part in self._parts.items() if part.running_since is None)
        started = [number for _, number in waiting if self._start(number, now)]
        if len(started) == len(waiting):
            return started
        before = {number for number, part in self._parts.items() if part.running_since is not None}
        for number in before:
            part = self._parts[number]
            part.left -= now - (part.running_since or 0.0)
            part.running_since, part.nodes = None, []
        self._clear()
        order = sorted((part.left, number) for number, part in self._parts.items())
        return [number for _, number in order if self._start(number, now)]

    def _clear(self) -> None:
        self._free = [self._gpus] * self._count
        self._levels: list[dict[int, None]] = [{} for _ in range(self._gpus + 1)]
        self._levels[self._gpus] = dict.fromkeys(range(self._count))

    def _start(self, number: int, now: float) -> bool:
        job, part = self._jobs[number], self._parts[number]
        for _ in range(job.pods):
            level = next((free for free in range(job.ask.gpus, self._gpus + 1) if self._levels[free]), None)
            if level is None:
                self._give_back(number, part)
                return False
            node = next(iter(self._levels[level]))
            self._move(node, -job.ask.gpus)
            part.nodes.append(node)
        part.running_since = now
        return True

    def _give_back(self, number: int, part: _Part) -> None:
        for node in part.nodes:
            self._move(node, self._jobs[number].ask.gpus)
        part.nodes = []

    def _move(self, node: int, change: int) -> None:
        del self._levels[self._free[node]][node]
        self._free[node] += change
        self._levels[self._free[node]][node] = None

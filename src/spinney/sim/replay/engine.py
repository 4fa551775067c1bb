"""The replay of a trace by one scheduler: jobs arrive, run for their time and end; nodes fail and come back.

The scheduler is the production one, with its sessions, plugins, queues and victims. Time is virtual and jumps from
event to event; a cycle follows whatever may let a job start, and another whatever was evicted. A job that is
evicted, or whose node fails, begins anew. The same trace, configuration and seed give the same history.

Policies take part as plugins of the configuration; a plugin that says when time alone changes its mind
(``session.wake_at``) is given a cycle then, as in production.
"""

import gc
import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, NamedTuple

import msgspec

from spinney.api.labels import HOSTNAME
from spinney.cluster.pods import PodKey
from spinney.runtime import InlineExecutor, Runtime, collection_held_off
from spinney.scheduler.config import PluginOption, SchedulerConfig
from spinney.scheduler.cycle.scheduler import Scheduler
from spinney.scheduler.framework.plugin import PluginRegistry
from spinney.scheduler.framework.results import Binding, CycleResult
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.plugins import default_registry
from spinney.scheduler.topology.levels import TopologyLevels
from spinney.sim.replay.devices import DeviceBook
from spinney.sim.replay.history import History, JobHappening, What
from spinney.sim.replay.limits import ApplicationBook, MostPerNode
from spinney.sim.replay.objects import TOPOLOGY, gang_key, gang_of, node_of, pod_key, pods_of, queues_of
from spinney.sim.replay.trace import Job, Machine, Trace
from spinney.sim.whatif.stepping import EPOCH, SteppedClock

_MOST_CYCLES: Final = 50
"""Cycles at one moment; what is evicted and placed in turns for longer waits for the next event."""
_SESSIONS_KEPT: Final = 64
"""Part of a session is garbage, in loops that only the collector finds: it is called after so many."""


def suited(config: SchedulerConfig, trace: Trace) -> SchedulerConfig:
    """Return a configuration as a replay of ``trace`` needs it.

    Shares of GPUs are given out, and nobody reads explanations. Where jobs are offered once and for all, nothing is
    moved or evicted for them.
    """
    changes: dict[str, object] = {"device_reservation": True, "explain": False}
    if trace.offered_once:
        changes["actions"] = tuple(name for name in config.actions if name == "allocate")
    return msgspec.structs.replace(config, **changes)


class Progress(NamedTuple):
    """How far a replay is."""

    at: float
    """Virtual seconds."""
    submitted: int
    jobs: int
    waiting: int


class _Place(NamedTuple):
    node: str
    groups: tuple[str, ...]
    devices: tuple[int, ...]


@dataclass(slots=True)
class _State:
    """A job as it stands. Mutable."""

    attempt: int = 0
    places: dict[PodKey, _Place] = field(default_factory=dict)
    running: bool = False


# What is due at the same moment happens in this order: room is made before it is asked for.
_END, _REPAIR, _FAIL, _ARRIVE, _CYCLE = range(5)


class PartReplay:
    """One replay of a trace, or of a part of one, by one scheduler. Mutable; made once, run once."""

    def __init__(
        self,
        trace: Trace,
        config: SchedulerConfig,
        *,
        stopwatch: Callable[[], float],
        registry: PluginRegistry | None = None,
        seed: int = 0,
        every: float = 0.0,
        progress: Callable[[Progress], None] = lambda progress: None,
    ) -> None:
        self.trace = trace
        self.history = History()
        self._every = every
        self._stopwatch = stopwatch
        self._progress = progress
        self._clock = SteppedClock(EPOCH)
        self._applications = ApplicationBook()
        registry = registry if registry is not None else default_registry()
        if any(job.ask.most_per_node for job in trace.jobs):
            registry.register(MostPerNode.name, lambda _: MostPerNode(self._applications))
            config = msgspec.structs.replace(config, plugins=(*config.plugins, PluginOption(MostPerNode.name)))
        self.inventory = Inventory.for_config(config)
        self.scheduler = Scheduler(
            config,
            self.inventory,
            runtime=Runtime(self._clock, random.Random(seed), InlineExecutor()),
            registry=registry,
        )
        self._devices = DeviceBook(trace.machines)
        self._states: dict[int, _State] = {}
        """Jobs that wait or run."""
        self._waiting: dict[int, None] = {}
        self._job_of: dict[PodKey, int] = {}
        self._due: list[tuple[float, int, int, int]] = []
        """What happens next: when, what, to which job or outage, in which attempt."""
        self._next_cycle: float | None = None

    def run(self) -> History:
        """Replay the trace to its end: until nobody runs who will end, and nothing else is due."""
        with collection_held_off():
            return self._run()

    def _run(self) -> History:
        began = self._stopwatch()
        now = 0.0
        self._set_up()
        while self._due:
            now = self._due[0][0]
            self._clock.move_to(EPOCH + timedelta(seconds=now))
            wanted = self._pass(now)
            if wanted and self._waiting:
                self._ask_for_cycle(now)
            if self._next_cycle is not None and self._next_cycle <= now:
                self._next_cycle = None
                self._cycles(now)
            if self._progress is not None:
                self._progress(Progress(now, self._submitted, len(self.trace.jobs), len(self._waiting)))
        self.history.ended_at = now
        self.history.seconds = self._stopwatch() - began
        return self.history

    # -- events ------------------------------------------------------------------------------------------------------

    def _set_up(self) -> None:
        for machine in self.trace.machines:
            self.inventory.apply(node_of(machine))
        for queue in queues_of(self.trace.quotas):
            self.inventory.put_queue(queue)
        levels = tuple(dict.fromkeys(job.topology for job in self.trace.jobs if job.topology))
        if levels:
            self.inventory.put_topology(TopologyLevels(TOPOLOGY, (*self.trace.levels, HOSTNAME)))
        self._submitted = 0
        self._due = [(job.submitted, _ARRIVE, number, 0) for number, job in enumerate(self.trace.jobs)]
        for number, outage in enumerate(self.trace.outages):
            self._due.append((outage.begins, _FAIL, number, 0))
            if outage.ends is not None:
                self._due.append((outage.ends, _REPAIR, number, 0))
        heapq.heapify(self._due)

    def _pass(self, now: float) -> bool:
        """Let everything happen that is due; return whether a job may be able to start."""
        wanted = False
        while self._due and self._due[0][0] <= now:
            _, what, number, attempt = heapq.heappop(self._due)
            if what == _ARRIVE:
                self._submit(number, now)
                wanted = True
            elif what == _END:
                wanted |= self._end(number, attempt, now)
            elif what == _FAIL:
                self._fail(self.trace.outages[number].machine, now)
                wanted = True
            elif what == _REPAIR:
                self.inventory.apply(node_of(self._machine(self.trace.outages[number].machine)))
                wanted = True
            else:
                wanted = True
        return wanted

    def _submit(self, number: int, now: float) -> None:
        self._submitted += 1
        self.history.events.append(JobHappening(now, "submitted", number))
        self._enter(number, _State())
        job = self.trace.jobs[number]
        if job.ends is not None:
            heapq.heappush(self._due, (max(job.ends, now), _END, number, -1))

    def _enter(self, number: int, state: _State) -> None:
        """Have a job wait, with pods of this attempt."""
        job = self.trace.jobs[number]
        # Jobs keep their age, and those of one moment the order of the trace.
        born = EPOCH + timedelta(seconds=job.submitted, microseconds=number % 1_000_000)
        gang = gang_of(job, born, state.attempt)
        if gang is not None:
            self.inventory.put_gang(gang)
        for pod in pods_of(job, born, state.attempt):
            self.inventory.apply(pod)
            self._job_of[PodKey(pod.metadata.namespace or "", pod.metadata.name)] = number
        self._states[number] = state
        self._waiting[number] = None

    def _end(self, number: int, attempt: int, now: float) -> bool:
        """End a job; an end that an eviction made void does not count."""
        state = self._states.get(number)
        if state is None or attempt not in {state.attempt, -1}:
            return False
        job = self.trace.jobs[number]
        what: What = "ended" if state.running else "forgotten"
        self._note(now, what, number, state)
        self._leave(number, state, job)
        del self._states[number]
        return state.running

    def _leave(self, number: int, state: _State, job: Job) -> None:
        """Take the pods of a job out of the cluster."""
        self._waiting.pop(number, None)
        for index in range(job.pods):
            key = pod_key(job, index)
            self.inventory.cluster.delete_pod(key)
            self._job_of.pop(key, None)
            place = state.places.pop(key, None)
            if place is not None:
                self._devices.give_back(place.node, job.ask, place.devices, place.groups)
                self._applications.put(job.application, place.node, -1)
        if job.pods > 1:
            self.inventory.remove_gang(gang_key(job))

    def _fail(self, machine: str, now: float) -> None:
        """Take a machine away; the jobs on it begin anew."""
        hit = [
            number
            for number, state in self._states.items()
            if any(place.node == machine for place in state.places.values())
        ]
        for number in hit:
            self._start_over(number, "failed", now)
        self.inventory.cluster.delete_node(machine)

    def _start_over(self, number: int, what: What, now: float) -> None:
        state, job = self._states[number], self.trace.jobs[number]
        self._note(now, what, number, state)
        self._leave(number, state, job)
        self._enter(number, _State(attempt=state.attempt + 1))

    # -- scheduling --------------------------------------------------------------------------------------------------

    def _ask_for_cycle(self, now: float) -> None:
        """Have a cycle run: at once, or at the next full period if cycles are ``every`` so many seconds."""
        moment = now if self._every <= 0 else -(-now // self._every) * self._every
        if self._next_cycle is None or moment < self._next_cycle:
            self._next_cycle = moment
            if moment > now:
                heapq.heappush(self._due, (moment, _CYCLE, 0, 0))

    def _cycles(self, now: float) -> None:
        """Run cycles until nothing more follows at this moment."""
        for _ in range(_MOST_CYCLES):
            began = self._stopwatch()
            result = self.scheduler.run_cycle(release=True)
            self.history.cycle_seconds.append(self._stopwatch() - began)
            if len(self.history.cycle_seconds) % _SESSIONS_KEPT == 0:
                gc.collect(1)
            self._carry_out(result, now)
            if not result.evictions or not self._waiting:
                break
        if self.trace.offered_once:
            for number in list(self._waiting):
                self._end(number, -1, now)
        elif result.next_moment is not None:
            heapq.heappush(self._due, ((result.next_moment - EPOCH).total_seconds(), _CYCLE, 0, 0))

    def _carry_out(self, result: CycleResult, now: float) -> None:
        for number in dict.fromkeys(self._job_of[eviction.pod] for eviction in result.evictions):
            self._start_over(number, "evicted", now)
        for bind in result.binds:
            self._bind(bind, now)

    def _bind(self, bind: Binding, now: float) -> None:
        number = self._job_of[bind.pod]
        state, job = self._states[number], self.trace.jobs[number]
        self.inventory.cluster.assume(bind.pod, bind.node, bind.gpu_groups)
        devices = self._devices.take(bind.node, job.ask, bind.gpu_groups)
        self._applications.put(job.application, bind.node)
        state.places[bind.pod] = _Place(bind.node, bind.gpu_groups, devices)
        self.history.decided += 1
        if len(state.places) == job.pods:
            state.running = True
            del self._waiting[number]
            self._note(now, "started", number, state)
            if job.duration is not None:
                heapq.heappush(self._due, (now + job.duration, _END, number, state.attempt))

    def _note(self, now: float, what: What, number: int, state: _State) -> None:
        job = self.trace.jobs[number]
        keys = [pod_key(job, index) for index in range(job.pods)]
        places = [state.places[key] for key in keys if key in state.places]
        self.history.events.append(
            JobHappening(now, what, number, tuple(each.node for each in places), tuple(each.devices for each in places))
        )

    def _machine(self, name: str) -> Machine:
        return next(machine for machine in self.trace.machines if machine.name == name)

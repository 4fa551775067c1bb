"""The replay of a trace by one scheduler: jobs arrive, run for their time and end; nodes fail and come back.

The scheduler is the production one, with its sessions, plugins, queues and victims. A cycle follows whatever may let a
job start, and another whatever was evicted. A job that is evicted, or whose node fails, begins anew; a node that is
closed takes no new pods. Budgets, device claims and volumes of a recording are played, too: what schedulers read of
them follows from the pods of the replay. The same trace, configuration and seed give the same history. Policies take
part as plugins of the configuration.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import NamedTuple

import msgspec

from spinney.api.core import Node
from spinney.api.labels import HOSTNAME
from spinney.api.policy import PodDisruptionBudget
from spinney.api.storage import PersistentVolume
from spinney.cluster.dra.allocating import GivenDevice
from spinney.cluster.pods import PodKey
from spinney.kube.keys import Key, key_of
from spinney.scheduler.config import PluginOption, SchedulerConfig
from spinney.scheduler.cycle.scheduler import Scheduler
from spinney.scheduler.fairshare.queues import QueueInfo
from spinney.scheduler.framework.plugin import PluginRegistry
from spinney.scheduler.framework.results import Binding
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.plugins import default_registry
from spinney.scheduler.topology.levels import TopologyLevels
from spinney.sim.engine import EPOCH, Cycled, Engine
from spinney.sim.replay.budgets import PlayedBudgets
from spinney.sim.replay.claims import CLAIMS, PlayedClaims
from spinney.sim.replay.devices import DeviceBook
from spinney.sim.replay.history import History, JobHappening, What
from spinney.sim.replay.limits import ApplicationBook, MostPerNode
from spinney.sim.replay.objects import (
    SCHEDULER,
    TOPOLOGY,
    closed,
    gang_key,
    gang_of,
    node_of,
    pod_key,
    pods_of,
    queues_of,
)
from spinney.sim.replay.trace import ClusterChange, Trace, united
from spinney.sim.replay.volumes import PlayedVolumes
from spinney.sim.whatif.running import running_as_bound


def suited(config: SchedulerConfig, trace: Trace) -> SchedulerConfig:
    """Return a configuration as a replay of ``trace`` needs it.

    Shares of GPUs are given out, and nobody reads explanations. All pods name one scheduler, whatever its own name is.
    Where jobs are offered once and for all, nothing is moved or evicted for them.
    """
    changes: dict[str, object] = {"device_reservation": True, "explain": False, "scheduler_names": (SCHEDULER,)}
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
    claims: Mapping[Key, tuple[GivenDevice, ...]]
    volumes: Mapping[Key, str]


@dataclass(slots=True)
class _State:
    """A job as it stands. Mutable."""

    attempt: int = 0
    places: dict[PodKey, _Place] = field(default_factory=dict)
    has_gang: bool = False
    running: bool = False
    end: int = -1
    """The event that ends it, if it runs and will end."""


# What is due at the same moment happens in this order: room is made before it is asked for, and the cluster is as it is
# from then on before a cycle follows, which an end that the trace gives has at once.
_END, _CHANGE, _REPAIR, _FAIL, _END_AS_GIVEN, _ARRIVE = range(6)


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
        self._stopwatch = stopwatch
        self._progress = progress
        self._engine = Engine(self._cycle, seed=seed, every=every)
        self._applications = ApplicationBook()
        registry = registry if registry is not None else default_registry()
        if any(job.ask.most_per_node for job in trace.jobs):
            registry.register(MostPerNode.name, lambda _: MostPerNode(self._applications))
            config = msgspec.structs.replace(config, plugins=(*config.plugins, PluginOption(MostPerNode.name)))
        self.inventory = Inventory.for_config(config)
        self.scheduler = Scheduler(config, self.inventory, runtime=self._engine.runtime, registry=registry)
        self._budgets = PlayedBudgets(self.inventory)
        self._devices = DeviceBook(trace.machines)
        self._nodes = {machine.name: node_of(machine) for machine in trace.machines}
        """As they would be if they were there and open."""
        self._volumes = PlayedVolumes(self.inventory, trace.reach, self._nodes)
        self._claims = PlayedClaims(self.inventory, self._volumes)
        self._states: dict[int, _State] = {}
        """Jobs that wait or run."""
        self._waiting: dict[int, None] = {}
        self._job_of: dict[PodKey, tuple[int, int]] = {}
        """Which job a pod is of, and which of its pods it is."""
        self._submitted = 0
        self._gone: set[str] = set()
        self._closed: set[str] = set()

    def run(self) -> History:
        """Replay the trace to its end: until nobody runs who will end, and nothing else is due."""
        began = self._stopwatch()
        self._set_up()
        self._engine.run(passed=self._tell)
        self.history.ended_at = self._engine.now
        self.history.seconds = self._stopwatch() - began
        return self.history

    def _tell(self) -> None:
        self._progress(Progress(self._engine.now, self._submitted, len(self.trace.jobs), len(self._waiting)))

    # -- events ------------------------------------------------------------------------------------------------------

    def _set_up(self) -> None:
        trace, at = self.trace, self._engine.at
        for node in self._nodes.values():
            self.inventory.apply(node)
        for queue in queues_of(trace.quotas):
            self.inventory.put_queue(queue)
        if any(job.topology for job in trace.jobs):
            self.inventory.put_topology(TopologyLevels(TOPOLOGY, (*trace.levels, HOSTNAME)))
        for number, change in enumerate(trace.changes):
            at(change.at, partial(self._change, change), (_CHANGE, number))
        for number, job in enumerate(trace.jobs):
            at(job.submitted, partial(self._submit, number), (_ARRIVE, number))
        for number, outage in enumerate(united(trace.outages)):
            at(outage.begins, partial(self._fail, outage.machine), (_FAIL, number))
            if outage.ends is not None:
                at(outage.ends, partial(self._repair, outage.machine), (_REPAIR, number))
        for number, closure in enumerate(united(trace.closures), start=len(trace.outages)):
            at(closure.begins, partial(self._close, closure.machine), (_FAIL, number))
            if closure.ends is not None:
                at(closure.ends, partial(self._open, closure.machine), (_REPAIR, number))

    def _submit(self, number: int) -> bool:
        self._submitted += 1
        self.history.events.append(JobHappening(self._engine.now, "submitted", number))
        job = self.trace.jobs[number]
        self._claims.enter(job)
        self._enter(number, _State())
        if job.ends is not None:
            ends = max(job.ends, self._engine.now)
            self._engine.at(ends, partial(self._end_as_given, number), (_END_AS_GIVEN, number))
        if job.recorded is not None and job.recorded.runs_from_the_beginning:
            for place, each in enumerate(job.recorded.pods):
                key, holding = pod_key(job, place), self.trace.holding
                held = {claim: holding[claim] for claim in job.recorded.claims_of(place) if claim in holding}
                self._bind(Binding(key, "", each.node, gang_key(job), each.gpu_groups, claims=held))
        return True

    def _enter(self, number: int, state: _State) -> None:
        """Have a job wait, with pods of this attempt."""
        job = self.trace.jobs[number]
        # Jobs keep their age, and those of one moment the order of the trace.
        born = EPOCH + timedelta(seconds=job.submitted, microseconds=number % 1_000_000)
        gang = gang_of(job, born, state.attempt)
        if gang is not None:
            self.inventory.put_gang(gang)
            state.has_gang = True
        for place, pod in enumerate(pods_of(job, born, state.attempt)):
            self.inventory.apply(pod)
            self._job_of[key_of(pod)] = number, place
        self._states[number] = state
        self._waiting[number] = None

    def _end(self, number: int) -> bool:
        """End a job; return whether that makes room for one that waits."""
        state = self._states.pop(number, None)
        if state is None:
            return False
        self._note("ended" if state.running else "forgotten", number, state)
        self._leave(number, state)
        self._claims.leave(self.trace.jobs[number])
        return state.running and bool(self._waiting)

    def _end_as_given(self, number: int) -> bool:
        """End a job when the trace says; those that wait are tried before the next one ends, as published."""
        if self._end(number):
            self._engine.follow()
        return False

    def _leave(self, number: int, state: _State) -> None:
        """Take the pods of a job out of the cluster."""
        job = self.trace.jobs[number]
        self._waiting.pop(number, None)
        self._engine.cancel(state.end)
        asks = job.asks
        for index in range(job.pods):
            key = pod_key(job, index)
            self.inventory.cluster.delete_pod(key)
            self._job_of.pop(key, None)
            place = state.places.pop(key, None)
            if place is not None:
                self._devices.give_back(place.node, asks[index], place.devices, place.groups)
                self._applications.put(job.application, place.node, -1)
        if state.has_gang:
            self.inventory.remove_gang(gang_key(job))

    def _fail(self, machine: str) -> bool:
        """Take a machine away; the jobs on it begin anew."""
        hit = [
            number
            for number, state in self._states.items()
            if any(place.node == machine for place in state.places.values())
        ]
        for number in hit:
            self._start_over(number, "failed")
        self.inventory.cluster.delete_node(machine)
        self._gone.add(machine)
        return bool(self._waiting)

    def _repair(self, name: str) -> bool:
        self._gone.remove(name)
        return self._shown(name)

    def _close(self, name: str) -> bool:
        """Let a machine take no new pods."""
        self._closed.add(name)
        self._shown(name)
        return False

    def _open(self, name: str) -> bool:
        self._closed.remove(name)
        return self._shown(name)

    def _shown(self, name: str) -> bool:
        """Have the scheduler see a machine that is there as it is now."""
        if name not in self._gone:
            node = self._nodes[name]
            self.inventory.apply(closed(node) if name in self._closed else node)
        return bool(self._waiting)

    def _change(self, change: ClusterChange) -> bool:
        """Have a node, a queue or what else schedulers read be as it was from now on."""
        match change.found, change.gone:
            case Node() as node, _:
                self._nodes[node.metadata.name] = node
                self._shown(node.metadata.name)
            case QueueInfo() as queue, False:
                self.inventory.put_queue(queue)
            case QueueInfo() as queue, True:
                self.inventory.remove_queue(queue.name)
            case PodDisruptionBudget() as budget, False:
                self._budgets.put(budget)
            case PodDisruptionBudget() as budget, True:
                self._budgets.remove(budget)
            case found, _ if isinstance(found, CLAIMS):
                self._claims.change(change)
            case PersistentVolume() as volume, _:
                self._volumes.change(change, volume)
            case found, False:
                self.inventory.apply(found)
            case found, True:
                self.inventory.delete(found)
        return bool(self._waiting)

    def _start_over(self, number: int, what: What) -> None:
        state = self._states[number]
        self._note(what, number, state)
        self._leave(number, state)
        self._claims.begin_anew(self.trace.jobs[number])
        self._enter(number, _State(attempt=state.attempt + 1))

    # -- scheduling --------------------------------------------------------------------------------------------------

    def _cycle(self) -> Cycled:
        """Run a cycle and carry out what it decides, if a job waits."""
        if not self._waiting:
            return Cycled(again=False)
        self._budgets.settle()
        began = self._stopwatch()
        result = self.scheduler.run_cycle(release=True)
        self.history.cycle_seconds.append(self._stopwatch() - began)
        bound = self._bind_jobs(result.binds)
        self.history.decided += bound
        # Among them may be jobs that were bound just now: what is evicted has its place first.
        for number in dict.fromkeys(self._job_of[eviction.pod][0] for eviction in result.evictions):
            if self._states[number].places:  # one that was not bound after all has none
                self._start_over(number, "evicted")
        if self.trace.offered_once:
            for number in list(self._waiting):
                self._end(number)
        refused_some = 0 < bound < len(result.binds)
        return Cycled(bool(result.evictions) or refused_some, result.next_moment)

    def _bind_jobs(self, binds: Sequence[Binding]) -> int:
        """Bind the pods of each job that can have all it was promised; return how many pods that were.

        Another job of the cycle may have taken a volume, and where drivers publish devices the scheduler counts them as
        GPUs. In a cluster such a gang is refused before it is bound, and tried again in the next cycle.
        """
        of_jobs: dict[int, list[Binding]] = {}
        for bind in binds:
            of_jobs.setdefault(self._job_of[bind.pod][0], []).append(bind)
        bound = 0
        for number, mine in of_jobs.items():
            if self._gets_its_claims(number, mine):
                for bind in mine:
                    self._bind(bind)
                bound += len(mine)
        return bound

    def _gets_its_claims(self, number: int, binds: Sequence[Binding]) -> bool:
        recorded = self.trace.jobs[number].recorded
        if recorded is None:
            return True
        pods = [recorded.pods[self._job_of[bind.pod][1]] for bind in binds]
        if self.inventory.claims.catalogue.by_node:
            asks = ((bind.node, pod.ask, bind.gpu_groups) for bind, pod in zip(binds, pods, strict=True))
            if not self._devices.suffice(asks):
                return False
        if not any(pod.volumes for pod in pods):
            return True
        records = [(self.inventory.cluster.pod(bind.pod), bind.node) for bind in binds]
        return self._volumes.take([(record.pod, node) for record, node in records if record is not None])

    def _bind(self, bind: Binding) -> None:
        """Have a pod run where it was bound; its job runs as soon as all its pods do."""
        number, place = self._job_of[bind.pod]
        state, job = self._states[number], self.trace.jobs[number]
        record = self.inventory.cluster.pod(bind.pod)
        assert record is not None, "only known pods are bound"
        self.inventory.apply(running_as_bound(record.pod, bind, self._engine.runtime.clock.now()))
        self._claims.bind(bind, record.uid)
        volumes = self._volumes.of(job.recorded.volumes_of(place)) if job.recorded is not None else {}
        ask = job.ask if job.recorded is None else job.recorded.pods[place].ask
        devices = self._devices.take(bind.node, ask, bind.gpu_groups)
        self._applications.put(job.application, bind.node)
        state.places[bind.pod] = _Place(bind.node, bind.gpu_groups, devices, bind.claims, volumes)
        if len(state.places) == job.pods:
            state.running = True
            del self._waiting[number]
            self._note("started", number, state)
            if job.duration is not None:
                state.end = self._engine.at(self._engine.now + job.duration, partial(self._end, number), (_END, number))

    def _note(self, what: What, number: int, state: _State) -> None:
        job = self.trace.jobs[number]
        keys = [pod_key(job, index) for index in range(job.pods)]
        places = [state.places[key] for key in keys if key in state.places]
        nodes, devices = tuple(each.node for each in places), tuple(each.devices for each in places)
        claims = tuple(each.claims for each in places) if any(each.claims for each in places) else ()
        volumes = tuple(each.volumes for each in places) if any(each.volumes for each in places) else ()
        happened = JobHappening(self._engine.now, what, number, nodes, devices, claims, volumes)
        self.history.events.append(happened)

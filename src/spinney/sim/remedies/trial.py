"""Whether a gang starts on a changed cluster: the production schedulers are run on it until they settle."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import msgspec

from spinney.api.kai import BIND_REQUEST, BindRequest
from spinney.cluster.pods import PodKey
from spinney.cluster.statuses import ACTIVE_ALLOCATED, WAITING
from spinney.gangs.tree import GangKey, is_satisfied
from spinney.runtime import Runtime
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.framework.plugin import PluginRegistry
from spinney.sim.snapshots.snapshot import ClusterSnapshot, differing
from spinney.sim.whatif.loading import SESSION_NAMES
from spinney.sim.whatif.simulation import Simulation

_CYCLES = 8
"""Evictions take a cycle, what they make room for takes another, and gates open between cycles."""


@dataclass(frozen=True, kw_only=True)
class Fate:
    """What became of the gang in question, and of others."""

    starts: bool
    waits: bool
    """Some of its pods still wait."""
    evicted: tuple[str, ...] = ()
    """Pods that were evicted, by name."""
    gpus: int = 0
    """GPUs these held."""
    started: frozenset[GangKey] = frozenset()
    """Gangs that got pods placed."""


@dataclass(kw_only=True)
class RemedyTrial:
    """Tries changed clusters for one gang. Mutable: a cluster on which nothing was decided is used again.

    Most changes help nobody. That is seen on one simulation of ``snapshot``, to which the change is made and taken back
    again. Wherever something is decided a simulation of its own says what comes of it.
    """

    gang: GangKey
    snapshot: ClusterSnapshot
    config: SchedulerConfig | None
    runtime: Runtime
    registry: PluginRegistry | None = None
    whole: bool = False
    """The gang has its minimum: what counts is that none of its pods waits."""
    _idle: Simulation | None = field(default=None, init=False)

    def run(self, changed: ClusterSnapshot, restarted: Iterable[GangKey] = ()) -> Fate:
        """Return what becomes of the gang on ``changed``, which was made from the snapshot.

        It counts as started only if all pods of the gangs that are ``restarted`` for it run again.
        """
        return self._without_effect(changed) or self._settled(changed, restarted)

    def _without_effect(self, changed: ClusterSnapshot) -> Fate | None:
        """Return what becomes of the gang if nothing at all is decided; ``None`` if something is."""
        if changed.of(BIND_REQUEST, BindRequest) or not self._only_sessions:
            return None  # pods that are being bound, or that the coscheduler tries, are not as they were afterwards
        idle = self._idle or self._simulated(self.snapshot)
        change = list(differing(self.snapshot, changed))
        idle.remove(each.old for each in change if each.new is None)
        idle.add(each.new for each in change if each.new is not None)
        result = idle.decisions()
        fate = None
        if not result.binds and not result.evictions:
            if idle.release_gates():
                self._idle = None
                return None
            starts, waits = progress(idle, self.gang)
            fate = Fate(starts=starts and not (self.whole and waits), waits=waits)
        idle.remove(each.new for each in change if each.old is None)
        idle.add(each.old for each in change if each.old is not None)
        self._idle = idle
        return fate

    @cached_property
    def _only_sessions(self) -> bool:
        """Tell whether the session scheduler places all that waits."""
        return all(pod.spec.node_name or pod.spec.scheduler_name in SESSION_NAMES for pod in self.snapshot.pods)

    def _simulated(self, snapshot: ClusterSnapshot) -> Simulation:
        config = self.config  # nobody reads what is said of a trial
        if config is not None:
            config = msgspec.structs.replace(config, explain=False, verbosity=0)
        return Simulation(snapshot, config, runtime=self.runtime, registry=self.registry, tells=False)

    def _settled(self, changed: ClusterSnapshot, restarted: Iterable[GangKey]) -> Fate:
        """Return what becomes of the gang once the schedulers have nothing more to decide."""
        simulation = self._simulated(changed)
        before = {record.key: record.request.gpus for record in simulation.inventory.cluster.pods() if record.node}
        evicted: dict[PodKey, int] = {}
        started: set[GangKey] = set()
        for _ in range(_CYCLES):
            outcome = simulation.cycle()
            evicted |= {each.pod: before.get(each.pod, 0) for each in outcome.evictions}
            placed = (simulation.inventory.cluster.pod(pod) for pod in outcome.placed)
            started |= {simulation.gang_of(record) for record in placed if record is not None}
            released = simulation.release_gates()
            if not outcome.changed and not released:
                break
        starts, waits = progress(simulation, self.gang)
        run_again = all(progress(simulation, each) == (True, False) for each in restarted)
        return Fate(
            starts=starts and run_again and not (self.whole and waits),
            waits=waits,
            evicted=tuple(str(pod) for pod in sorted(evicted)),
            gpus=sum(evicted.values()),
            started=frozenset(started),
        )


def progress(simulation: Simulation, key: GangKey) -> tuple[bool, bool]:
    """Tell whether a gang has its minimum placed, and whether some of its pods wait."""
    members = [record for record in simulation.inventory.cluster.pods() if simulation.gang_of(record) == key]
    waits = any(record.status in WAITING for record in members)
    held = Counter(simulation.pod_set_of(record) for record in members if record.status in ACTIVE_ALLOCATED)
    if not held:
        return False, waits
    gang = simulation.gang(key)
    return gang is None or is_satisfied(gang.root, lambda pod_set: held[pod_set.name]), waits

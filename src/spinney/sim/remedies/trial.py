"""Whether a gang starts on a changed cluster: the production schedulers are run on it until they settle."""

from collections import Counter
from dataclasses import dataclass

import msgspec

from spinney.cluster.pods import PodKey
from spinney.cluster.statuses import ACTIVE_ALLOCATED, PodStatus
from spinney.gangs.tree import GangKey, satisfied
from spinney.runtime import Runtime
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.framework.plugin import PluginRegistry
from spinney.sim.snapshot import ClusterSnapshot
from spinney.sim.whatif import Simulation

_CYCLES = 8
"""Evictions take a cycle, what they make room for takes another, and gates open between cycles."""


@dataclass(frozen=True, kw_only=True)
class Fate:
    """What became of the gang in question, and of others."""

    starts: bool
    waits: bool
    """Some of its pods still wait."""
    evicted: tuple[str, ...]
    """Pods that were evicted, by name."""
    gpus: int
    """GPUs these held."""
    started: frozenset[GangKey]
    """Gangs that got pods placed."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Tries changed clusters for one gang."""

    gang: GangKey
    config: SchedulerConfig | None
    runtime: Runtime
    registry: PluginRegistry | None = None
    whole: bool = False
    """The gang has its minimum: what counts is that none of its pods waits."""

    def run(self, snapshot: ClusterSnapshot) -> Fate:
        """Return what becomes of the gang on ``snapshot``."""
        config = msgspec.structs.replace(self.config, explain=False) if self.config is not None else None
        simulation = Simulation(snapshot, config, runtime=self.runtime, registry=self.registry)
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
        return Fate(
            starts=starts and not (self.whole and waits),
            waits=waits,
            evicted=tuple(str(pod) for pod in sorted(evicted)),
            gpus=sum(evicted.values()),
            started=frozenset(started),
        )


def progress(simulation: Simulation, key: GangKey) -> tuple[bool, bool]:
    """Return whether a gang has its minimum placed, and whether some of its pods wait."""
    members = [record for record in simulation.inventory.cluster.pods() if simulation.gang_of(record) == key]
    waits = any(record.status in (PodStatus.PENDING, PodStatus.GATED) for record in members)
    held = Counter(simulation.pod_set_of(record) for record in members if record.status in ACTIVE_ALLOCATED)
    if not held:
        return False, waits
    gang = simulation.gang(key)
    return gang is None or satisfied(gang.root, lambda pod_set: held[pod_set.name]), waits

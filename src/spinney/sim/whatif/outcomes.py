"""What became of a simulated cluster: who was placed, evicted or promised room, and who waits for what."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from spinney.cluster.pods import PodKey
from spinney.explain import Explanation
from spinney.gangs.tree import GangKey
from spinney.scheduler.framework.results import CycleResult, Eviction


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """A gang, or a single pod, that is left pending, and why."""

    gang: GangKey
    pods: tuple[PodKey, ...]
    message: str
    explanation: Explanation | None = None


@dataclass(frozen=True, kw_only=True)
class CycleOutcome:
    """What one cycle decided: nodes by pod, who is evicted, who is promised room, and who waits."""

    placed: Mapping[PodKey, str]
    evictions: tuple[Eviction, ...] = ()
    promised: Mapping[PodKey, str]
    waiting: tuple[Waiting, ...] = ()
    graces: Mapping[PodKey, timedelta]
    """How long victims would be given to checkpoint first; here they go at once."""
    result: CycleResult
    """The session scheduler's part, whole."""

    @property
    def changed(self) -> bool:
        """Tell whether anything was decided."""
        return bool(self.placed or self.evictions)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a cluster: decisions of all cycles, and who waits after the last."""

    cycles: int
    settled: bool
    """False: the last cycle still changed something."""
    placed: Mapping[PodKey, str]
    evictions: tuple[Eviction, ...]
    graces: Mapping[PodKey, timedelta]
    """How long victims would be given to checkpoint first; here they went at once."""
    waiting: tuple[Waiting, ...]
    gangs: Mapping[PodKey, GangKey]
    """The gang of every pod that was placed or waits."""

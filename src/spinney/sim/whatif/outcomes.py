"""What became of a simulated cluster: who was placed, evicted or promised room, and who waits for what.

Two outcomes can be compared: which gangs fare differently.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from spinney.cluster.pods import PodKey
from spinney.explain.reasons import Explanation
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


@dataclass(frozen=True, kw_only=True)
class Difference:
    """How one gang fares differently."""

    gang: GangKey
    before: str
    after: str


def differences(before: Outcome, after: Outcome) -> list[Difference]:
    """Return the gangs that fare differently in ``after``, in order of name."""
    left, right = _fates(before), _fates(after)
    return [
        Difference(gang=gang, before=left.get(gang, "not there"), after=right.get(gang, "not there"))
        for gang in sorted({*left, *right})
        if left.get(gang) != right.get(gang)
    ]


def _fates(outcome: Outcome) -> dict[GangKey, str]:
    nodes: dict[GangKey, list[str]] = {}
    for pod, node in outcome.placed.items():
        nodes.setdefault(outcome.gangs[pod], []).append(node)
    fates = {gang: f"{len(found)} placed on {', '.join(sorted(set(found)))}" for gang, found in nodes.items()}
    for each in outcome.waiting:
        waits = f"{len(each.pods)} pending" if each.pods else "pending"
        fates[each.gang] = f"{fates[each.gang]}, {waits}" if each.gang in fates else waits
    for eviction in outcome.evictions:
        fates[eviction.gang] = f"{fates.get(eviction.gang, '')} (evicted from {eviction.node})".lstrip()
    return fates

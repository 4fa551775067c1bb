"""The last cycles, for people: what each cost, by action and plugin, and what was decided about which gang."""

from collections import Counter, deque
from collections.abc import Iterator
from datetime import datetime
from typing import Final, Literal

from spinney.api.struct import Struct
from spinney.explain.amounts import counted
from spinney.gangs.tree import GangKey
from spinney.scheduler.framework.results import CycleResult
from spinney.scheduler.process.commit import by_gang

KEPT: Final = 200
SHOWN: Final = 50
"""Decisions that are kept of one cycle."""
_SHORTEST: Final = 1e-5
"""Seconds below which a hook is not worth a line."""


class Spent(Struct, frozen=True, kw_only=True, array_like=True):
    """Time that one hook of a plugin took; actions count as plugin ``action``."""

    plugin: str
    hook: str
    seconds: float


class GangDecision(Struct, frozen=True, kw_only=True):
    """What a cycle decided about a gang."""

    what: Literal["placed", "promised", "evicted", "waits"]
    gang: str
    namespace: str
    pods: int
    text: str = ""


class CycleRecord(Struct, frozen=True, kw_only=True):
    """One cycle."""

    number: int
    at: datetime
    seconds: float
    pending: int
    binds: int
    evictions: int
    unschedulable: int
    spent: tuple[Spent, ...] = ()
    decisions: tuple[GangDecision, ...] = ()
    more: int = 0
    """How many decisions are not listed."""


class CycleLog:
    """The newest cycles. Mutable: it forgets the oldest."""

    def __init__(self) -> None:
        self._records: deque[CycleRecord] = deque(maxlen=KEPT)
        self._number = 0

    def note(self, result: CycleResult, *, at: datetime, seconds: float, pending: int) -> None:
        """Keep what one cycle decided and cost."""
        self._number += 1
        decisions = list(_decisions(result))
        costly = sorted(result.seconds.items(), key=lambda each: -each[1])
        self._records.append(
            CycleRecord(
                number=self._number,
                at=at,
                seconds=round(seconds, 6),
                pending=pending,
                binds=len(result.binds),
                evictions=len(result.evictions),
                unschedulable=len(result.unschedulable),
                spent=tuple(
                    Spent(plugin=plugin, hook=hook, seconds=round(spent, 6))
                    for (plugin, hook), spent in costly
                    if spent >= _SHORTEST
                ),
                decisions=tuple(decisions[:SHOWN]),
                more=max(0, len(decisions) - SHOWN),
            )
        )

    def after(self, number: int) -> tuple[CycleRecord, ...]:
        """Return the cycles after one, oldest first."""
        return tuple(record for record in self._records if record.number > number)


def _decisions(result: CycleResult) -> Iterator[GangDecision]:
    for gang, binds in by_gang(result.binds).items():
        nodes = {bind.node for bind in binds}
        yield _about("placed", gang, len(binds), f"on {counted(len(nodes), 'node')}")
    for gang, pods in Counter(each.gang for each in result.pipelines).items():
        yield _about("promised", gang, pods, "where pods are terminating")
    victims = Counter((each.gang, each.beneficiary, each.message) for each in result.evictions)
    for (gang, beneficiary, message), pods in victims.items():
        yield _about("evicted", gang, pods, f"for {beneficiary}" if beneficiary is not None else message)
    for refused in result.unschedulable:
        yield _about("waits", refused.gang, 0, refused.message)


def _about(
    what: Literal["placed", "promised", "evicted", "waits"], gang: GangKey, pods: int, text: str
) -> GangDecision:
    return GangDecision(what=what, gang="/".join(gang), namespace=gang.namespace, pods=pods, text=text)

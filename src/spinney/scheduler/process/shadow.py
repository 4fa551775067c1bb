"""Scheduling in the shadow of another scheduler: deciding everything, writing nothing, and comparing.

A shadow reads the pods that another scheduler serves and decides about them as if they were its own. What it would have
bound is assumed in its own ledger, so that it does not decide twice, until the other scheduler's decision arrives,
which then counts: both always see the same cluster, in whichever order they decide. The comparison says, per pod, who
placed it where, and how much earlier the shadow had decided.
"""

from collections.abc import Mapping, Sequence
from enum import Enum

import msgspec
import structlog

from spinney.api.core import Pod
from spinney.gangs.tree import GangKey
from spinney.kube.cache import Change
from spinney.kube.keys import Key
from spinney.runtime import Clock
from spinney.scheduler.framework.results import Binding, CycleResult
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.process.commit import BookPositions, assume_gang, by_gang, changes_since

log = structlog.get_logger()


class Comparison(Enum):
    """How the two schedulers compare on one pod; the value is the words for it."""

    SAME = "same node"
    OTHER = "another node"
    OURS_ONLY = "placed by us only"
    THEIRS_ONLY = "placed by the other only"


class Intention(msgspec.Struct, frozen=True):
    """What the shadow would have done with a pod, and when."""

    gang: GangKey
    node: str
    at: float


class Compared(msgspec.Struct, frozen=True):
    """One pod as both schedulers see it. A node is empty, and a moment None, where there was no decision."""

    pod: Key
    gang: str
    ours: str
    theirs: str
    lead: float | None
    """Seconds by which the shadow decided earlier than the other's bind was seen; None unless both decided."""

    @property
    def difference(self) -> Comparison:
        """Return how the two compare."""
        if not self.theirs:
            return Comparison.OURS_ONLY
        if not self.ours:
            return Comparison.THEIRS_ONLY
        return Comparison.SAME if self.ours == self.theirs else Comparison.OTHER


class Shadow:
    """Effects that write nothing. Mutable: it collects what both schedulers decided; fills ``Effects``."""

    def __init__(self, inventory: Inventory, clock: Clock) -> None:
        self._inventory = inventory
        self._clock = clock
        self._intended: dict[Key, Intention] = {}
        self._bound: dict[Key, tuple[str, float]] = {}
        self.refused: Mapping[GangKey, str] = {}
        """The gangs the last cycle could not have placed, and why."""
        self.evictions = 0

    def compared(self) -> list[Compared]:
        """Return every pod that either scheduler has placed, in the order of their names."""
        return [self._compare(pod) for pod in sorted(self._intended.keys() | self._bound.keys())]

    def pod_changed(self, change: Change[Pod]) -> None:
        """Note where the other scheduler has put a pod that was pending."""
        pod = change.new
        if pod is None:
            if change.key not in self._bound:
                self._intended.pop(change.key, None)
            return
        was_waiting = change.old is not None and not change.old.spec.node_name
        if pod.spec.node_name and was_waiting and pod.spec.scheduler_name in self._inventory.scheduler_names:
            self._bound[change.key] = (pod.spec.node_name, self._clock.monotonic())
            found = self._compare(change.key)
            log.info(
                "other scheduler bound",
                pod=str(found.pod),
                node=found.theirs,
                ours=found.ours,
                difference=found.difference.value,
            )

    def before_cycle(self) -> None:
        """Nothing is kept for gangs that come."""

    def bind(self, binds: Sequence[Binding], *, decided_at: BookPositions) -> None:
        """Note what would have been bound."""
        cluster, claims = self._inventory.cluster, self._inventory.claims
        changed = changes_since(cluster, decided_at)
        now = self._clock.monotonic()
        for gang, together in by_gang(binds).items():
            # Where the other was faster, the decision is only noted: its pods are on nodes already.
            assume_gang(cluster, claims, together, changed=changed)
            for bind in together:
                self._intended[bind.pod] = Intention(gang, bind.node, now)
                log.info("would bind", pod=str(bind.pod), node=bind.node, gang=str(gang))

    def conclude(self, result: CycleResult) -> None:
        """Note what would have been evicted, and what could not be placed."""
        for eviction in result.evictions:
            log.info("would evict", pod=str(eviction.pod), node=eviction.node, gang=str(eviction.gang))
        self.evictions += len(result.evictions)
        self.refused = {refused.gang: refused.message for refused in result.unschedulable}

    async def finish(self) -> None:
        """Take back what was assumed."""
        for pod in self._intended:
            self._inventory.cluster.forget(pod)

    def _compare(self, pod: Key) -> Compared:
        intention, bound = self._intended.get(pod), self._bound.get(pod)
        return Compared(
            pod=pod,
            gang=str(intention.gang) if intention is not None else "",
            ours=intention.node if intention is not None else "",
            theirs=bound[0] if bound is not None else "",
            lead=bound[1] - intention.at if intention is not None and bound is not None else None,
        )

"""Releasing gangs that stayed part-bound for too long, by evicting what was bound of them.

Which gangs those are is kept by :class:`~spinney.binding.repair.PartGangs`; here is the clock that runs against them
and the evictions. A gang that a disruption budget protects is tried again after another grace period.
"""

import asyncio
from collections.abc import Iterable
from typing import Final

import structlog

from spinney.binding.evicting import Disruption, Evictor, Victim
from spinney.binding.repair import PartGangs, placed_pods
from spinney.cluster.pods import PodRecord
from spinney.gangs.sources import bare
from spinney.gangs.tree import GangKey
from spinney.runtime import Clock
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.process.cycle_metrics import CycleMetrics

log = structlog.get_logger()

EVENT_REASON: Final = "GangReleased"
RELEASE: Final = "release"
"""The word for it in metrics."""


class GangReleaser:
    """Watches over part-bound gangs. Mutable."""

    def __init__(
        self, clock: Clock, inventory: Inventory, gangs: PartGangs, *, evictor: Evictor, metrics: CycleMetrics
    ) -> None:
        self.gangs = gangs
        self._clock = clock
        self._inventory = inventory
        self._evictor = evictor
        self._metrics = metrics
        self._news = asyncio.Event()

    def look(self, *gangs: GangKey) -> None:
        """Look at gangs that may have become part-bound, or whole."""
        before = self.gangs.next_due
        now = self._clock.monotonic()
        for gang in gangs:
            if gang.source == bare.SOURCE:
                continue  # a single pod is whole or not there
            self.gangs.look(gang, self._inventory.gangs.members(gang), now=now)
        if self.gangs.next_due != before:
            self._news.set()

    def look_after_cycle(self, pending: Iterable[GangKey]) -> None:
        """Look at the gangs that a cycle found waiting for pods, and again at those that were part-bound before."""
        self.look(*pending, *self.gangs.keys)

    def pod_going(self, record: PodRecord) -> None:
        """Look at the gang of a pod that is about to be lost: as it is, and again when the inventory knows."""
        gang, _ = self._inventory.gangs.membership(record)
        self.look(gang)
        asyncio.get_running_loop().call_soon(self.look, gang)

    async def run(self) -> None:
        """Release gangs as their grace periods end, until cancelled."""
        while True:
            due = self.gangs.next_due
            self._news.clear()
            try:
                async with asyncio.timeout(None if due is None else max(0.0, due - self._clock.monotonic())):
                    await self._news.wait()
            except TimeoutError:
                for gang in self.gangs.due(self._clock.monotonic()):
                    await self._release(gang)

    async def _release(self, gang: GangKey) -> None:
        members = self._inventory.gangs.members(gang)
        self.gangs.look(gang, members, now=self._clock.monotonic())
        if members is None or gang not in self.gangs.keys:
            return
        placed = placed_pods(members)
        log.warning("gang stayed part-bound, releasing it", gang=str(gang), bound=len(placed), pods=len(members.pods))
        message = f"gang {gang} could not be completed and gives back what it holds"
        victims = tuple(Victim(record.key, record.uid, message) for record in placed)
        gone = await self._evictor.evict(Disruption(str(gang), victims, reason=EVENT_REASON))
        if len(gone) == len(victims):
            self._metrics.released.inc()
        self._metrics.gangs.evicted(len(gone), queue=members.gang.queue, reason=RELEASE)
        self.gangs.postpone(gang, now=self._clock.monotonic())

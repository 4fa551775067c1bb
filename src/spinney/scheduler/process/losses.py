"""What evictions cost the gangs that are evicted: reckoned before they go, counted once they are gone."""

from collections.abc import Iterable, Mapping

import msgspec
import structlog

from spinney.binding.lost_work import lost_gpu_seconds
from spinney.cluster.pods import PodKey
from spinney.gangs.checkpoints import outcome_of
from spinney.gangs.tree import GangKey
from spinney.runtime import Clock
from spinney.scheduler.framework.results import Eviction
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.process.cycle_metrics import CycleMetrics

log = structlog.get_logger()


class Loss(msgspec.Struct, frozen=True):
    """What the eviction of a pod costs its gang, and how its gang came to it; the outcome is empty if nobody asked."""

    gang: GangKey
    action: str
    outcome: str
    gpu_seconds: float


class Losses:
    """Counts what is lost by evictions, and what became of those that were asked first."""

    def __init__(self, inventory: Inventory, metrics: CycleMetrics, clock: Clock) -> None:
        self._inventory = inventory
        self._metrics = metrics
        self._clock = clock

    def reckon(self, evictions: Iterable[Eviction]) -> Mapping[PodKey, Loss]:
        """Return what becomes of each pod that is about to be evicted; to be counted once it is."""
        now = self._clock.now()
        asked = self._inventory.requests.all()
        losses: dict[PodKey, Loss] = {}
        for eviction in evictions:
            members = self._inventory.gangs.members(eviction.gang)
            found = members.pods.get(eviction.pod) if members is not None else None
            if members is None or found is None:
                continue
            said = asked.get(eviction.pod)
            lost = lost_gpu_seconds(members, [found[1]], now=now, asked=said)
            losses[eviction.pod] = Loss(eviction.gang, eviction.action, outcome_of(members, said), lost)
        return losses

    def count(self, losses: Iterable[Loss]) -> None:
        """Count pods that were evicted: the work that is lost, and each gang that was asked once."""
        listed = list(losses)
        for gang, outcome in {(loss.gang, loss.outcome) for loss in listed}:
            if outcome:
                self._metrics.gangs.checkpoints.labels(outcome).inc()
                log.info("asked gang evicted", gang=str(gang), outcome=outcome)
        for loss in listed:
            self._metrics.gangs.lost(loss.gpu_seconds, reason=loss.action)

"""What pods of other schedulers hold: a running sum per node, so that a cycle need not walk the pods."""

from collections.abc import Mapping

import msgspec

from spinney.cluster.pods import PodRecord
from spinney.cluster.resources import CPU, MEMORY
from spinney.cluster.statuses import ACTIVE_USED
from spinney.cluster.surroundings import keep
from spinney.scheduler.fairshare.amounts import GPU, ZERO, Amounts


class ForeignHoldings(msgspec.Struct, frozen=True):
    """What is held at one moment, on all nodes and by node."""

    total: Amounts
    by_node: Mapping[str, Amounts]


class ForeignUse:
    """What is held now. Mutable; fed with each change of a pod that another scheduler has placed."""

    def __init__(self) -> None:
        self._total = ZERO
        self._by_node: dict[str, Amounts] = {}
        self._copy: ForeignHoldings | None = None

    def count(self, record: PodRecord, times: int) -> None:
        """Count what a pod holds on its node so many times more; once less when it goes."""
        if holds(record):
            self._copy = None
            amounts = held(record).times(times)
            self._total += amounts
            keep(self._by_node, record.node, self._by_node.get(record.node, ZERO) + amounts or None)

    def holdings(self) -> ForeignHoldings:
        """Return the sums as they are now; the same value until something changes."""
        if self._copy is None:
            self._copy = ForeignHoldings(self._total, dict(self._by_node))
        return self._copy


def holds(record: PodRecord) -> bool:
    """Tell whether a pod is on a node and holds what it asks for."""
    return bool(record.node) and record.status in ACTIVE_USED


def held(record: PodRecord) -> Amounts:
    """Return what a pod holds of the resources that queues divide."""
    request = record.request
    gpus = request.gpus + request.mig_slices
    return Amounts(int(request.requests[CPU]), int(request.requests[MEMORY]), gpus * GPU)

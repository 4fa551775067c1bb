"""What queues hold and want through the pods of their gangs, as counts by kind of pod.

Counts by request class can be charged for exactly, whatever the charge depends on: the memory of a device, the smallest
device of the cluster.
"""

from collections.abc import Mapping
from typing import NamedTuple

from spinney.cluster.classes import RequestClass
from spinney.cluster.pods import PodRecord
from spinney.cluster.statuses import CHARGED, PodStatus
from spinney.gangs.tree import Gang


class HoldingKind(NamedTuple):
    """What pods of a queue have in common as far as charging is concerned."""

    request: RequestClass
    preemptible: bool
    charged: bool
    """True: the queue pays for them. False: they are pending."""
    node: str
    """Where they are, for requests whose size depends on the node; empty otherwise."""


Holdings = Mapping[HoldingKind, int]
"""How many pods of each kind."""


class QueueHoldings:
    """The holdings of every queue that has some. Mutable."""

    def __init__(self) -> None:
        self.by_queue: dict[str, dict[HoldingKind, int]] = {}

    def count(self, gang: Gang, record: PodRecord, step: int) -> None:
        """Count a pod of a gang ``step`` times more."""
        self._count(gang.queue, _kind_of(gang, record), step)

    def change(self, gang: Gang, old: PodRecord, new: PodRecord) -> None:
        """Count a pod of a gang as it is, and no longer as it was."""
        before, after = _kind_of(gang, old), _kind_of(gang, new)
        if before != after:
            self._count(gang.queue, before, -1)
            self._count(gang.queue, after, 1)

    def copied(self) -> dict[str, Holdings]:
        """Return the holdings by queue as they are now."""
        return {queue: dict(holdings) for queue, holdings in self.by_queue.items()}

    def _count(self, queue: str, kind: HoldingKind | None, step: int) -> None:
        if kind is None:
            return
        holdings = self.by_queue.setdefault(queue, {})
        count = holdings.get(kind, 0) + step
        if count:
            holdings[kind] = count
        else:
            del holdings[kind]
            if not holdings:
                del self.by_queue[queue]


def charges_alike(one: Gang, other: Gang) -> bool:
    """Tell whether the pods of two gangs count as the same in the same queue."""
    return one.queue == other.queue and one.preemptible == other.preemptible


def _kind_of(gang: Gang, record: PodRecord) -> HoldingKind | None:
    """Return as what a pod counts in its queue's books; ``None`` if it does not."""
    charged = record.status in CHARGED
    if not charged and record.status is not PodStatus.PENDING:
        return None
    by_node = charged and record.request.share is not None and record.request.share.memory > 0
    return HoldingKind(record.request, gang.preemptible, charged, record.node if by_node else "")

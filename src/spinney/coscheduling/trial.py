"""The cluster to try things on: evict here, place there, and see what fits. Nothing outside notices.

A trial is a fork of the columns, so it costs a copy of small arrays once; each step after that costs one row.
"""

from collections.abc import Iterable, Mapping

from spinney.cluster.pods import PodKey, PodRecord
from spinney.cluster.state import ClusterState, holding_of
from spinney.cluster.statuses import ACTIVE_USED
from spinney.cluster.table import Holding
from spinney.coscheduling.nominations import Nomination


class Trial:
    """A private copy of the cluster. Mutable."""

    def __init__(self, cluster: ClusterState, nominations: Iterable[Nomination] = ()) -> None:
        self.view = cluster.view.fork()
        self._on_node = cluster.on_node.fork()
        for nomination in nominations:
            row = self.view.table.find(nomination.node)
            if row is not None:
                self.place(nomination.record, row)

    def pods_on(self, row: int) -> Mapping[PodKey, PodRecord]:
        """Return the pods that are on a node in the cluster and were not evicted here."""
        return self._on_node.of_row(row)

    def evict(self, record: PodRecord) -> None:
        """Take a pod off its node."""
        row = self.view.table.row(record.node)
        self.view.table.subtract(row, holding_of(record.status), record.request.requests)
        self.view.pods.remove(record.key)
        self._on_node.remove(row, record.key)

    def restore(self, record: PodRecord) -> None:
        """Undo :meth:`evict`."""
        row = self.view.table.row(record.node)
        self.view.table.add(row, holding_of(record.status), record.request.requests)
        self.view.pods.place(record.pod, row)
        self._on_node.add(row, record)

    def place(self, record: PodRecord, row: int) -> None:
        """Put a pending pod on a node; it does not count among :meth:`pods_on`, for it is nobody's victim."""
        if record.status in ACTIVE_USED:
            return
        self.view.table.add(row, Holding.ACTIVE, record.request.requests)
        self.view.pods.place(record.pod, row)

    def withdraw(self, record: PodRecord, row: int) -> None:
        """Undo :meth:`place`."""
        self.view.table.subtract(row, Holding.ACTIVE, record.request.requests)
        self.view.pods.remove(record.key)

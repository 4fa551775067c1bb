"""What a group of tasks asks of a domain, and how many of its pods fit on a node.

Tasks that ask for the same kinds of things are counted in pods: a node holds as many as the largest request of each
resource allows, one at most of those that refuse to share a node. Tasks of different kinds are only compared in sum.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from spinney.api.labels import HOSTNAME
from spinney.cluster.classes import DeviceShare, RequestClass
from spinney.cluster.devices import DEVICE
from spinney.cluster.fitting import pods_per_node, sharing_pods_per_node
from spinney.cluster.journal import Rows
from spinney.cluster.resources import GPU, Vector, padded
from spinney.scheduler.framework.nodes import Nodes
from spinney.scheduler.placement.apart import one_per_node


@dataclass(frozen=True, eq=False)
class GroupDemand:
    """What tasks ask for together."""

    count: int
    total: Vector
    """Summed requests, ``[resource]``; a share of a device counts as a whole one."""
    largest: Vector
    """The largest request of each resource, ``[resource]``."""
    shares: tuple[DeviceShare, ...]
    """What those ask for that share devices."""
    homogeneous: bool
    """All ask for the same kinds of resources, so pods can be counted."""
    single: RequestClass | None
    """The request, where all tasks have the same one."""

    @classmethod
    def of(cls, counts: Mapping[RequestClass, int], width: int) -> "GroupDemand":
        """Return the demand of so many tasks of each request."""
        total = np.zeros(width, dtype=np.int64)
        largest = np.zeros(width, dtype=np.int64)
        kinds: set[tuple[bool, tuple[int, ...]]] = set()
        for request, count in counts.items():
            vector = padded(request.requests, width)
            total += count * vector
            if request.share is not None:
                total[GPU] += -(-count * request.share.devices * request.share.parts_on(1) // DEVICE)
            np.maximum(largest, vector, out=largest)
            beyond = tuple(column for column in request.columns.tolist() if column > GPU)
            kinds.add((request.requires_gpu, beyond))
        shares = tuple(request.share for request in counts if request.share is not None)
        only = next(iter(counts)) if len(counts) == 1 else None
        return cls(sum(counts.values()), total, largest, shares, len(kinds) == 1, only)

    def alone(self) -> "GroupDemand":
        """Return the demand of any number of such pods, for counting how many fit."""
        return replace(self, count=np.iinfo(np.int64).max)

    def pods_on(self, nodes: Nodes, rows: Rows) -> Vector:
        """Return how many of the pods fit on each row once what is terminating is gone."""
        table = nodes.table
        columns = np.flatnonzero(self.largest)
        fits = pods_per_node(table.free_at(columns, rows), self.largest[columns], self.count)
        if self.shares:
            largest = max(self.shares, key=lambda share: share.parts_on(1))
            np.minimum(fits, sharing_pods_per_node(nodes.ledger, largest, rows), out=fits)
        if self.single is not None and one_per_node(self.single):
            np.minimum(fits, 1, out=fits, where=table.labels.column(HOSTNAME)[rows] >= 0)
        return fits

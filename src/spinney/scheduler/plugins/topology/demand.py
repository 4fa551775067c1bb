"""What a group of tasks asks of a domain, and how many of its pods fit on a node.

Tasks that ask for the same kinds of things are counted in pods: a node holds as many as the largest request of each
resource allows, one at most of those that refuse to share a node. Tasks of different kinds are only compared in sum.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from spinney.api.labels import HOSTNAME
from spinney.cluster.classes import DeviceShare, RequestClass
from spinney.cluster.devices import DEVICE
from spinney.cluster.fitting import pods_per_node, sharing_pods_per_node
from spinney.cluster.journal import Rows
from spinney.cluster.resources import GPU, Vector, padded
from spinney.cluster.table import Matrix
from spinney.scheduler.framework.nodes import Nodes
from spinney.scheduler.placement.apart import is_one_per_node

_ANY_NUMBER: Final = int(np.iinfo(np.int64).max)


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

    @cached_property
    def alone(self) -> "GroupDemand":
        """Return the demand of any number of such pods, for counting how many fit."""
        return replace(self, count=_ANY_NUMBER)

    @cached_property
    def columns(self) -> Rows:
        """Return the resources asked for."""
        return np.flatnonzero(self.total)

    def room_on(self, nodes: Nodes, rows: Rows) -> Matrix:
        """Return, for each row, how many of the pods fit, and what is free there of what they ask for.

        That is ``[row, 1 + resource]``, as it is once what is terminating is gone; for pods that all ask for the same.
        """
        free = nodes.table.free_at(self.columns, rows)
        return np.vstack((self._fitting(nodes, rows, free, self.columns), free)).T

    def pods_on(self, nodes: Nodes, rows: Rows) -> Vector:
        """Return how many of the pods fit on each row once what is terminating is gone."""
        columns = np.flatnonzero(self.largest)
        return self._fitting(nodes, rows, nodes.table.free_at(columns, rows), columns)

    def _fitting(self, nodes: Nodes, rows: Rows, free: Matrix, columns: Rows) -> Vector:
        table = nodes.table
        fits = pods_per_node(free, self.largest[columns], self.count)
        if self.shares:
            largest = max(self.shares, key=lambda share: share.parts_on(1))
            np.minimum(fits, sharing_pods_per_node(nodes.ledger, largest, rows), out=fits)
        if self.single is not None and is_one_per_node(self.single):
            np.minimum(fits, 1, out=fits, where=table.labels.column(HOSTNAME)[rows] >= 0)
        return fits

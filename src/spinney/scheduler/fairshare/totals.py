"""What there is to divide: the cluster's total, and the range of its device sizes."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from spinney.cluster.resources import CPU, MEMORY, mig_slices
from spinney.cluster.resources import GPU as GPU_COLUMN
from spinney.cluster.table import NodeTable
from spinney.scheduler.fairshare.amounts import GPU, ZERO, Amounts, total_of
from spinney.scheduler.fairshare.foreign import ForeignHoldings

_DEFAULT_MEMORY = 100


class DeviceSizes(NamedTuple):
    """Memory of the smallest and of the largest GPU of a cluster, in MiB.

    A request for device memory that is not placed yet has two readings: the larger cost (on the smallest device) when
    requests are added up to divide the cluster, and the smaller one (on the largest) when a job is asked whether it
    could fit at all, so that nothing is refused that some node would allow.
    """

    smallest: int = _DEFAULT_MEMORY
    largest: int = _DEFAULT_MEMORY


def device_sizes(table: NodeTable) -> DeviceSizes:
    """Return the sizes of devices on nodes that have some and say how large they are."""
    memories = table.gpu_memory[table.alive & table.gpu_memory_known & (table.gpu_count > 0)]
    return DeviceSizes(int(memories.min()), int(memories.max())) if memories.size else DeviceSizes()


def cluster_total(table: NodeTable, foreign: ForeignHoldings) -> Amounts:
    """Return what the ready nodes offer together, less what pods of other schedulers hold on them."""
    counted = table.alive & table.ready
    offered = table.allocatable[counted].sum(axis=0)
    slices = sum(mig_slices(table.axis.name(int(column))) * int(offered[column]) for column in np.flatnonzero(offered))
    total = Amounts(int(offered[CPU]), int(offered[MEMORY]), (int(offered[GPU_COLUMN]) + slices) * GPU)
    return total - (foreign.total - total_of(_elsewhere(table, foreign)))


def _elsewhere(table: NodeTable, foreign: ForeignHoldings) -> Iterator[Amounts]:
    """Return what others hold on nodes that do not count: those that are not ready, or not in the table."""
    unready = [table.names[row] for row in np.flatnonzero(table.alive & ~table.ready).tolist()]
    for name in (*unready, *(name for name in foreign.by_node if name not in table)):
        yield foreign.by_node.get(name, ZERO)

"""What a task costs its queue: the amounts of its request class.

GPUs count as whole devices, parts of shared ones, and MIG instances by their compute slices. A request for device
memory costs a different part of each kind of device. Where it is not placed yet, two readings are needed: the larger
cost (the smallest device of the cluster) when requests are added up to divide the cluster, and the smaller one (the
largest device) when a job is asked whether it could fit at all, so that nothing is refused that some node would allow.
"""

import numpy as np

from spinney.cluster.classes import RequestClass, RequestClasses
from spinney.cluster.resources import CPU, MEMORY, mig_slices
from spinney.cluster.resources import GPU as GPU_COLUMN
from spinney.cluster.table import NodeTable
from spinney.scheduler.fairshare.amounts import GPU, Amounts

_DEFAULT_MEMORY = 100


class Charges:
    """Amounts by request class, computed once each."""

    def __init__(self, classes: RequestClasses, table: NodeTable) -> None:
        memories = table.gpu_memory[table.alive & table.gpu_memory_known & (table.allocatable[:, GPU_COLUMN] > 0)]
        self.smallest_device = int(memories.min()) if memories.size else _DEFAULT_MEMORY
        self.largest_device = int(memories.max()) if memories.size else _DEFAULT_MEMORY
        self._classes = classes
        self._known: dict[tuple[RequestClass, int], Amounts] = {}

    def pending(self, request: RequestClass) -> Amounts:
        """Return the cost of a task whose node is not known yet, on the smallest device."""
        return self.on_device(request, self.smallest_device)

    def at_least(self, request: RequestClass) -> Amounts:
        """Return the least a task can cost, on the largest device."""
        return self.on_device(request, self.largest_device)

    def on_device(self, request: RequestClass, device_memory: int) -> Amounts:
        """Return the cost of a task on a node whose devices have ``device_memory`` MiB."""
        memory = device_memory if request.share is not None and request.share.memory else 0
        found = self._known.get((request, memory))
        if found is None:
            found = self._known[request, memory] = self._cost(request, memory)
        return found

    def _cost(self, request: RequestClass, device_memory: int) -> Amounts:
        gpu = request.gpus * GPU + self._classes.mig_slices(request) * GPU
        if request.share is not None:
            gpu += request.share.parts_on(device_memory) * request.share.devices
        return Amounts(int(request.requests[CPU]), int(request.requests[MEMORY]), gpu)


def cluster_total(table: NodeTable) -> Amounts:
    """Return what the ready nodes offer together."""
    ready = table.alive & table.ready
    offered = table.allocatable[ready].sum(axis=0)
    axis = table.axis
    slices = sum(mig_slices(axis.name(int(column))) * int(offered[column]) for column in np.flatnonzero(offered))
    return Amounts(int(offered[CPU]), int(offered[MEMORY]), (int(offered[GPU_COLUMN]) + slices) * GPU)

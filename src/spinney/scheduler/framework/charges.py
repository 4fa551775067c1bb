"""What queues pay for pods in a session."""

from collections import Counter
from collections.abc import Sequence
from functools import cached_property

from spinney.cluster.classes import RequestClass
from spinney.cluster.table import NodeTable
from spinney.scheduler.fairshare import Amounts
from spinney.scheduler.fairshare.amounts import charge_of, total_of
from spinney.scheduler.fairshare.totals import DeviceSizes, device_sizes
from spinney.scheduler.framework.tasks import NOWHERE, REQUEST, PodInfo


class Charges:
    """What tasks cost. Mutable: it remembers what request classes do."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._known: dict[int, Amounts] = {}

    @cached_property
    def sizes(self) -> DeviceSizes:
        """Return the memory of the smallest and of the largest GPU of the cluster."""
        return device_sizes(self._table)

    def of_request(self, request: RequestClass, gpu_memory: int) -> Amounts:
        """Return what a queue pays for a pod of a class on a node whose GPUs have ``gpu_memory`` MiB each."""
        if request.share is not None and request.share.memory > 0:
            return charge_of(request, gpu_memory)
        known = self._known.get(request.number)
        if known is None:
            known = self._known[request.number] = charge_of(request, gpu_memory)
        return known

    def of(self, task: PodInfo) -> Amounts:
        """Return what the queue pays for a task where it is; for a task that is nowhere, what it asks for."""
        memory = int(self._table.gpu_memory[task.row]) if task.row != NOWHERE else self.sizes.smallest
        return self.of_request(task.request, memory)

    def of_all(self, tasks: Sequence[PodInfo]) -> Amounts:
        """Return what queues pay for tasks together."""
        if len(tasks) == 1 and tasks[0].request.share is None:
            return self.of_request(tasks[0].request, 0)
        counts: Counter[RequestClass] = Counter(map(REQUEST, tasks))
        if any(request.share is not None for request in counts):
            return total_of(map(self.of, tasks))
        return total_of(self.of_request(request, 0).times(count) for request, count in counts.items())

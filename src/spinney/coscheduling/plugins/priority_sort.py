"""PrioritySort: the order of the queue in a scheduler without groups."""

from typing import Any

from spinney.coscheduling.framework.points import QueuedPod, QueueSort


class PrioritySort(QueueSort):
    """Higher priority first, then the pod that came first."""

    name = "PrioritySort"

    def sort_key(self, queued: QueuedPod) -> tuple[Any, ...]:
        """Return priority, time of queueing, name."""
        return (-queued.priority, queued.queued, queued.key)

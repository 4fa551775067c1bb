"""PrioritySort: the order of the queue in a scheduler without groups."""

from collections.abc import Mapping
from typing import Any

from spinney.coscheduling.framework.handle import Handle
from spinney.coscheduling.framework.points import QueuedPod, QueueSort
from spinney.coscheduling.plugins.arguments import take_none


class PrioritySort(QueueSort):
    """Higher priority first, then the pod that came first."""

    name = "PrioritySort"

    def __init__(self, handle: Handle, arguments: Mapping[str, Any]) -> None:
        take_none(arguments)

    def sort_key(self, queued: QueuedPod) -> tuple[Any, ...]:
        """Return priority, time of queueing, name."""
        return (-queued.priority, queued.queued, queued.key)

"""Objects that a scheduler cannot take in: each stays its own problem.

An object that makes a scheduler's books raise is logged and counted, and an event on it says why. It is then treated as
absent: nothing is placed on such a node, in such a queue or for such a group. A pod that cannot be read is not
scheduled and says so. If it is on a node, what it takes there is not known, so the node takes no other pod until it can
be read or is gone.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
import structlog

from spinney.api.core import POD
from spinney.api.resource import Resource
from spinney.cluster.state import ClusterState
from spinney.kube.cache import Change
from spinney.kube.events import EventRecorder, reference
from spinney.kube.keys import Key
from spinney.kube.metrics import KubeMetrics
from spinney.reporting.pods import SCHEDULER_ERROR, PodStatusWriter, PodVerdict

log = structlog.get_logger()

TakeIn = Callable[[Change[Any]], None]


class UnreadableObjects(msgspec.Struct, frozen=True):
    """Guards what takes objects in.

    ``writer`` and ``events`` are absent where nothing is written, ``cluster`` where nothing is placed.
    """

    metrics: KubeMetrics
    cluster: ClusterState | None = None
    writer: PodStatusWriter | None = None
    events: EventRecorder | None = None

    def guarded(self, resource: Resource, take_in: TakeIn) -> TakeIn:
        """Return ``take_in`` without what it may raise."""

        def guarded(change: Change[Any]) -> None:
            try:
                take_in(change)
            except Exception as error:
                log.exception("object not taken in", resource=str(resource), object=str(change.key))
                self.metrics.undecodable.labels(str(resource)).inc()
                if change.new is None:
                    return
                self._tell(resource, change.key, change.new, error)
                if resource is POD:
                    if self.cluster is not None:
                        self.cluster.leave_unread(change.key, change.new)
                else:
                    with suppress(Exception):  # it may not have got as far as being there
                        take_in(Change(change.key, change.old or change.new, None, change.resource_version))

        return guarded

    def _tell(self, resource: Resource, key: Key, found: Any, error: Exception) -> None:
        said = f"the scheduler cannot read this object, and ignores it: {type(error).__name__}: {error}"
        if resource is POD and not found.spec.node_name:
            if self.writer is not None:
                self.writer.waits(PodVerdict(key, found.metadata.uid or "", said, said, reason=SCHEDULER_ERROR))
        elif self.events is not None:
            self.events.event(reference(resource, found), "Warning", SCHEDULER_ERROR, said)

"""Telling people why a pod waits, in kube-scheduler's words."""

from collections.abc import Iterable

from spinney.cluster.filters import FilterResult
from spinney.cluster.pods import PodRecord
from spinney.cluster.state import ClusterState
from spinney.coscheduling.cycle.scheduler import UnplacedPod
from spinney.coscheduling.framework import Code, Status
from spinney.coscheduling.groups.wording import nodes_counted
from spinney.explain.rendering import EVENT_BYTES, bounded
from spinney.reporting.pods import (
    INADMISSIBLE,
    SCHEDULER_ERROR,
    UNSCHEDULABLE,
    PodStatusWriter,
    PodVerdict,
)
from spinney.reporting.verdicts import WAITING_FOR_ROOM


class Reports:
    """Turns refusals into words. Mutable: pods refused for the same are counted once."""

    def __init__(self, writer: PodStatusWriter, cluster: ClusterState) -> None:
        self._writer = writer
        self._cluster = cluster
        self._counted: tuple[FilterResult, str] | None = None

    def put(self, refused: UnplacedPod, others: Iterable[PodRecord] = ()) -> None:
        """Report that a pod found no node, or that trying to place it failed.

        The ``others`` of its gang wait for the same, tried or not: autoscalers count every pod that waits for nodes.
        """
        reason = SCHEDULER_ERROR if refused.status.code is Code.ERROR else _waits(refused)
        message = self.message(refused)
        self._say(refused.record, reason, message)
        tried = refused.found is not None or refused.status.code is Code.UNRESOLVABLE  # else it lost a node it had
        if tried and reason in (UNSCHEDULABLE, INADMISSIBLE):
            for record in others:
                if self._writer.last_reason(record.key, record.uid) != reason:
                    self._say(record, reason, f"pod {refused.record.key.name} of its gang waits: {message}")

    def held(self, record: PodRecord, status: Status) -> None:
        """Report why a pod is not tried."""
        self._say(record, status.waits, status.message)

    def kept(self, record: PodRecord, message: str) -> None:
        """Report that room is being made for a pod: no new node is needed."""
        self._say(record, WAITING_FOR_ROOM, message)

    def message(self, refused: UnplacedPod) -> str:
        """Return the text: nodes counted by reason, or why the pod was refused as a whole."""
        found = refused.found
        if found is None:
            nodes = len(self._cluster.table)
            text = refused.status.message
            return f"0/{nodes} nodes are available: {text}." if refused.status.rejected else text
        if self._counted is None or self._counted[0] is not found:
            self._counted = (found, nodes_counted(refused.record, self._cluster.table, found))
        counted = self._counted[1]
        return f"{counted} {refused.tail}" if refused.tail else counted

    def _say(self, record: PodRecord, reason: str, message: str) -> None:
        self._writer.waits(PodVerdict.of(record, reason, message, bounded(message, EVENT_BYTES)))


def _waits(refused: UnplacedPod) -> str:
    """Return what a refused pod waits for, as the reason of its condition."""
    found = refused.found
    return INADMISSIBLE if found is not None and found.pre_filter is not None else refused.status.waits

"""Telling people why a pod waits, in kube-scheduler's words."""

from spinney.cluster.filters import FilterResult
from spinney.cluster.pods import PodRecord
from spinney.cluster.state import ClusterState
from spinney.coscheduling.cycle.scheduler import Refused
from spinney.coscheduling.framework import Code
from spinney.coscheduling.groups.wording import nodes_counted
from spinney.explain.rendering import EVENT_BYTES, bounded
from spinney.kube.keys import Key
from spinney.reporting.pods import POD_SCHEDULED, SCHEDULER_ERROR, UNSCHEDULABLE, PodStatusWriter, PodVerdict


class Reports:
    """Turns refusals into words. Mutable: pods refused for the same are counted once."""

    def __init__(self, writer: PodStatusWriter, cluster: ClusterState) -> None:
        self._writer = writer
        self._cluster = cluster
        self._counted: tuple[FilterResult, str] | None = None

    def put(self, refused: Refused) -> None:
        """Report that a pod found no node, or that trying to place it failed."""
        reason = SCHEDULER_ERROR if refused.status.code is Code.ERROR else UNSCHEDULABLE
        self._say(refused.record, reason, self.message(refused))

    def held(self, record: PodRecord, message: str) -> None:
        """Report why a pod is not tried."""
        self._say(record, UNSCHEDULABLE, message)

    def message(self, refused: Refused) -> str:
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
        condition = record.pod.condition(POD_SCHEDULED)
        verdict = PodVerdict(
            Key(*record.key),
            record.uid,
            message,
            bounded(message, EVENT_BYTES),
            reason=reason,
            known_to_wait=condition is not None and condition.status == "False",
        )
        self._writer.waits(verdict)

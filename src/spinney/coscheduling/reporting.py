"""Telling people why a pod waits, in kube-scheduler's words."""

import numpy as np

from spinney.binding.reporting import PodVerdict, Reporter
from spinney.cluster.filters import FilterResult
from spinney.cluster.state import ClusterState
from spinney.coscheduling.scheduler import Refused
from spinney.explain import NodeNames, kube_message, pod_report
from spinney.explain.rendering import EVENT_BYTES, bounded
from spinney.kube.keys import Key


class Reports:
    """Turns refusals into verdicts. Mutable: pods refused for the same are counted once."""

    def __init__(self, reporter: Reporter, cluster: ClusterState) -> None:
        self._reporter = reporter
        self._cluster = cluster
        self._counted: tuple[FilterResult, str] | None = None

    def put(self, refused: Refused) -> None:
        """Report that a pod found no node."""
        record = refused.record
        self.say(Key(*record.key), record.uid, self.message(refused))

    def say(self, pod: Key, uid: str, message: str) -> None:
        """Report why a pod waits; returns at once."""
        self._reporter.unschedulable((PodVerdict(pod, uid, message, bounded(message, EVENT_BYTES)),))

    def forget(self, pod: Key) -> None:
        """Drop what was said, or was to be said, about a pod that is being bound or is gone."""
        self._reporter.forget(pod)

    async def flush(self) -> None:
        """Wait until everything has been written."""
        await self._reporter.flush()

    def message(self, refused: Refused) -> str:
        """Return the text: nodes counted by reason, or why the pod was refused as a whole."""
        found = refused.found
        if found is None:
            nodes = len(self._cluster.table)
            text = refused.status.message
            return f"0/{nodes} nodes are available: {text}." if refused.status.rejected else text
        if self._counted is None or self._counted[0] is not found:
            self._counted = (found, self._count(refused, found))
        counted = self._counted[1]
        return f"{counted} {refused.tail}" if refused.tail else counted

    def _count(self, refused: Refused, found: FilterResult) -> str:
        names = NodeNames(self._cluster.table.names, np.asarray(self._cluster.table.rows()))
        return kube_message(pod_report(str(refused.record.key), names, found.refusals, pre_filter=found.pre_filter))

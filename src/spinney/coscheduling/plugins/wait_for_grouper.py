"""WaitForGrouper: a pod of a workload does not enter the queue before the grouper has named its gang."""

from spinney.api.core import POD, Pod
from spinney.api.labels import COSCHEDULING_GROUP
from spinney.coscheduling.framework import SUCCESS, Action, EventHint, PreEnqueue, Status
from spinney.gangs.sources.ungrouped import is_ungrouped
from spinney.reporting.pods import WAITING_FOR_TURN


class WaitForGrouper(PreEnqueue):
    """Holds pods that may belong to a gang; not among the defaults, as without a grouper they would wait for ever."""

    name = "WaitForGrouper"

    def pre_enqueue(self, pod: Pod) -> Status:
        """Keep a pod out that nobody has looked at yet."""
        if not _waits(pod):
            return SUCCESS
        return Status.unresolvable(
            "waiting for the grouper to say which gang the pod belongs to", waits=WAITING_FOR_TURN
        )

    def events(self) -> tuple[EventHint, ...]:
        """Return the change of a pod that may have been grouped."""
        return (EventHint(POD, Action.UPDATE, lambda pod, event: not _waits(pod)),)


def _waits(pod: Pod) -> bool:
    named = pod.spec.scheduling_group is not None or pod.spec.workload_ref is not None
    return is_ungrouped(pod) and COSCHEDULING_GROUP not in pod.metadata.labels and not named

"""SchedulingGates: a pod with gates does not enter the queue."""

from spinney.api.core import POD, Pod
from spinney.coscheduling.framework import SUCCESS, Action, EventHint, PreEnqueue, Status


class SchedulingGates(PreEnqueue):
    """Holds gated pods; the removal of the last gate is a change of the pod itself, which brings it back."""

    name = "SchedulingGates"

    def pre_enqueue(self, pod: Pod) -> Status:
        """Keep a pod with gates out."""
        if not pod.gated:
            return SUCCESS
        gates = ", ".join(gate.name for gate in pod.spec.scheduling_gates)
        return Status.unresolvable(f"waiting for scheduling gates: {gates}")

    def events(self) -> tuple[EventHint, ...]:
        """Return the change of a pod that may have lost its gates."""
        return (EventHint(POD, Action.UPDATE, lambda pod, event: not pod.gated),)

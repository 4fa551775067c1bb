"""Telling people: the PodScheduled condition and events of pods, and the Scheduled condition of gangs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from spinney.api.conditions import find_condition
from spinney.api.meta import Condition
from spinney.api.podgang import CONSTRAINT_NOT_HONOURED, DISRUPTION_TARGET, POD_GANG, SCHEDULED, PodGang
from spinney.api.struct import JSON
from spinney.api.time import timestamp
from spinney.kube.client import Client
from spinney.kube.errors import NotFound
from spinney.kube.events import EventRecorder, reference
from spinney.kube.keys import key_of
from spinney.reporting.pods import SCHEDULER_ERROR, UNSCHEDULABLE, PodStatusWriter, PodVerdict
from spinney.runtime import Clock

__all__ = ["EVICTED", "UNSCHEDULABLE", "GangVerdict", "PodVerdict", "Reporter", "gang_status"]

EVICTED = "EvictedByScheduler"
_REFUSED = frozenset({UNSCHEDULABLE, SCHEDULER_ERROR, CONSTRAINT_NOT_HONOURED})


@dataclass(frozen=True, slots=True)
class GangVerdict:
    """Whether a gang has what it needs, the word for it and the one sentence about it."""

    scheduled: bool
    reason: str
    message: str
    placement_score: float | None = None
    disruption: str = ""
    """For whom pods of the gang were evicted, while it has not recovered."""


class Reporter(PodStatusWriter):
    """Writes verdicts of one scheduler, on pods and on gangs. Mutable: it remembers what it said about pods."""

    def __init__(self, client: Client, clock: Clock, events: EventRecorder, *, event_reason: str) -> None:
        super().__init__(client, events, event_reason=event_reason)
        self._clock = clock

    def unschedulable(self, verdicts: Sequence[PodVerdict]) -> None:
        """Say why pods wait, where that was not said before; returns at once."""
        for verdict in verdicts:
            self.waits(verdict)

    async def gang(self, gang: PodGang, verdict: GangVerdict) -> None:
        """Write how far a PodGang has come, unless its status says so already."""
        status = gang_status(gang, verdict, now=self._clock.now())
        if status is None:
            return
        key = key_of(gang)
        body: JSON = {"metadata": {"name": key.name, "namespace": key.namespace}, "status": status}
        try:
            await self._client.apply(POD_GANG, body, subresource="status")
        except NotFound:
            return
        was = find_condition(gang.status.conditions, SCHEDULED)
        if verdict.scheduled and (was is None or was.status != "True"):
            self._events.event(reference(POD_GANG, gang), "Normal", SCHEDULED, verdict.message)
        elif verdict.reason in _REFUSED and (was is None or was.message != verdict.message):
            self._events.event(reference(POD_GANG, gang), "Warning", verdict.reason, verdict.message)


def gang_status(gang: PodGang, verdict: GangVerdict, *, now: datetime) -> JSON | None:
    """Return the scheduler's part of a PodGang's status, or None if it stands there already."""
    present = gang.status
    condition = Condition(
        type=SCHEDULED,
        status="True" if verdict.scheduled else "False",
        reason=verdict.reason,
        message=verdict.message,
        observed_generation=gang.metadata.generation,
    )
    was = find_condition(present.conditions, SCHEDULED)
    if (
        was is not None
        and (was.status, was.reason, was.message) == (condition.status, condition.reason, condition.message)
        and present.placement_score == verdict.placement_score
        and (find_condition(present.conditions, DISRUPTION_TARGET) is not None) == bool(verdict.disruption)
    ):
        return None
    same = was is not None and was.status == condition.status and was.last_transition_time is not None
    since = was.last_transition_time if same and was is not None else None
    conditions = [_condition_json(condition, since or now)]
    if verdict.disruption:
        target = Condition(type=DISRUPTION_TARGET, status="True", reason=EVICTED, message=verdict.disruption)
        known = find_condition(present.conditions, DISRUPTION_TARGET)
        conditions.append(_condition_json(target, (known.last_transition_time if known is not None else None) or now))
    status: JSON = {"conditions": conditions}
    if verdict.placement_score is not None:
        status["placementScore"] = verdict.placement_score
    return status


def _condition_json(condition: Condition, since: datetime) -> Mapping[str, object]:
    fields: dict[str, object] = {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": timestamp(since),
    }
    if condition.observed_generation is not None:
        fields["observedGeneration"] = condition.observed_generation
    return fields

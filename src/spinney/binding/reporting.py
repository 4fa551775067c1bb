"""Telling people: the PodScheduled condition and events of pods, and the Scheduled condition of gangs.

A verdict is written when it is new and not again while it stays the same: a gang that waits for hours costs one write
per pod, not one per cycle. Verdicts on pods are written in the background, a few at a time; one that is overtaken by a
newer verdict on the same pod is not written at all. What was said about a pod is forgotten with the pod.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import structlog

from spinney.api.conditions import find_condition
from spinney.api.core import POD
from spinney.api.meta import Condition
from spinney.api.podgang import DISRUPTION_TARGET, POD_GANG, SCHEDULED, PodGang
from spinney.api.struct import JSON
from spinney.api.time import timestamp
from spinney.binding.placement import pod_reference
from spinney.kube.client import Client, PatchKind
from spinney.kube.errors import Conflict, Invalid, KubeError, NotFound
from spinney.kube.events import EventRecorder, reference
from spinney.kube.keys import Key, key_of
from spinney.runtime import Clock

log = structlog.get_logger()

UNSCHEDULABLE = "Unschedulable"
EVICTED = "EvictedByScheduler"

_IN_FLIGHT = 8


@dataclass(frozen=True, slots=True)
class PodVerdict:
    """Why a pod was not placed. ``message`` goes into its condition, ``event`` into an event on it."""

    pod: Key
    uid: str
    message: str
    event: str


@dataclass(frozen=True, slots=True)
class GangVerdict:
    """Whether a gang has what it needs, the word for it and the one sentence about it."""

    scheduled: bool
    reason: str
    message: str
    placement_score: float | None = None
    disruption: str = ""
    """For whom pods of the gang were evicted, while it has not recovered."""


class Reporter:
    """Writes verdicts of one scheduler. Mutable: it remembers what it said."""

    def __init__(self, client: Client, clock: Clock, events: EventRecorder, *, event_reason: str) -> None:
        self._client = client
        self._clock = clock
        self._events = events
        self._event_reason = event_reason
        self._said: dict[Key, tuple[str, str]] = {}
        self._outbox: OrderedDict[Key, PodVerdict] = OrderedDict()
        self._being_written: set[Key] = set()
        self._writers: set[asyncio.Task[None]] = set()

    def unschedulable(self, verdicts: Sequence[PodVerdict]) -> None:
        """Say why pods wait, where that was not said before; returns at once."""
        for verdict in verdicts:
            if self._said.get(verdict.pod) == (verdict.uid, verdict.message):
                continue
            self._said[verdict.pod] = (verdict.uid, verdict.message)
            self._events.event(pod_reference(verdict.pod, verdict.uid), "Warning", self._event_reason, verdict.event)
            self._outbox[verdict.pod] = verdict
            if len(self._writers) < _IN_FLIGHT:
                self._writers.add(asyncio.create_task(self._write(), name="pod conditions"))

    def forget(self, pod: Key) -> None:
        """Drop what was said, or was still to be said, about a pod that was bound or is gone."""
        self._said.pop(pod, None)
        self._outbox.pop(pod, None)

    async def flush(self) -> None:
        """Wait until every verdict has been written."""
        while self._writers:
            await asyncio.wait(self._writers)

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
        elif verdict.reason == UNSCHEDULABLE and (was is None or was.message != verdict.message):
            self._events.event(reference(POD_GANG, gang), "Warning", UNSCHEDULABLE, verdict.message)

    async def _write(self) -> None:
        """Write what waits; of one pod there is only ever one verdict being written."""
        try:
            while (pod := next((pod for pod in self._outbox if pod not in self._being_written), None)) is not None:
                verdict = self._outbox.pop(pod)
                self._being_written.add(pod)
                try:
                    await self._write_pod_condition(verdict)
                finally:
                    self._being_written.remove(pod)
        finally:
            self._writers.remove(asyncio.current_task())  # type: ignore[arg-type]

    async def _write_pod_condition(self, verdict: PodVerdict) -> None:
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": UNSCHEDULABLE,
            "message": verdict.message,
            "lastTransitionTime": timestamp(self._clock.now()),
        }
        # The uid makes the write fail for a pod of the same name that came later.
        patch = {"metadata": {"uid": verdict.uid}, "status": {"conditions": [condition]}}
        try:
            await self._client.patch(
                POD, verdict.pod.name, patch, verdict.pod.namespace, kind=PatchKind.STRATEGIC, subresource="status"
            )
        except (NotFound, Conflict, Invalid):
            # Another uid is a conflict to one API server and an attempt to change an immutable field to another.
            self.forget(verdict.pod)
        except KubeError as error:
            self.forget(verdict.pod)
            log.warning("condition not written", pod=str(verdict.pod), error=str(error))


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
        and (was.status, was.message) == (condition.status, condition.message)
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

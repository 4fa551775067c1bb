"""What the status of a pod says while it has no node: why it waits, and which node it was promised. And of victims.

Of one pod there is only ever one write under way, and what changes meanwhile is combined into the next, so the newest
word is the one that stays. A bind waits for the write under way and drops what was still to be said: the API server
says PodScheduled itself then, and nobody contradicts it afterwards.

A verdict is written when it is new and not again while it stays the same: a pod that waits for hours costs one write,
not one per attempt.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

import structlog

from spinney.api.core import POD
from spinney.api.podgang import DISRUPTION_TARGET
from spinney.api.struct import JSON
from spinney.api.time import timestamp
from spinney.binding.placement import pod_reference
from spinney.cluster.pods import PodRecord
from spinney.kube.client import Client, PatchKind
from spinney.kube.errors import Conflict, Invalid, KubeError, NotFound
from spinney.kube.events import EventRecorder
from spinney.kube.keys import Key
from spinney.kube.retrying import exponential

log = structlog.get_logger()

POD_SCHEDULED: Final = "PodScheduled"
UNSCHEDULABLE: Final = "Unschedulable"
"""The pod waits for nodes. Cluster Autoscaler and Karpenter add nodes for pods that say so, and for no others."""
WAITING_FOR_QUOTA: Final = "WaitingForQuota"
"""A queue's limit or quota is in the way; a new node would stay empty."""
WAITING_FOR_PODS: Final = "WaitingForPods"
"""Its gang has too few pods to start."""
WAITING_FOR_TURN: Final = "WaitingForTurn"
"""It was not looked at yet: there was no time, or others of its gang come first."""
WAITING_FOR_PROVISIONING: Final = "WaitingForProvisioning"
"""Nodes for its gang are asked for by a ProvisioningRequest."""
INADMISSIBLE: Final = "Inadmissible"
"""Something has to be put right that no node brings: a queue, a claim, a topology that is not there."""
SCHEDULER_ERROR: Final = "SchedulerError"
FAILED_SCHEDULING: Final = "FailedScheduling"
"""The reason of kube-scheduler's events that say why a pod or group waits."""

_IN_FLIGHT: Final = 8
_CLOSING_SECONDS: Final = 0.5
"""How long the writer goes on writing when the process stops."""
_FIRST_PAUSE, _LONGEST_PAUSE = 5.0, 300.0
"""Seconds after which what could not be written is written again, unless something else is to be said by then."""


@dataclass(frozen=True, slots=True)
class PodVerdict:
    """Why a pod was not placed. ``message`` goes into its condition, ``event`` into an event on it."""

    pod: Key
    uid: str
    message: str
    event: str
    reason: str = UNSCHEDULABLE
    known_to_wait: bool = False
    """Whether the condition is False already, so that this is not the time of its transition."""

    @classmethod
    def of(cls, record: PodRecord, reason: str, message: str, event: str = "") -> "PodVerdict":
        """Return what to say of a pod, in the event too if nothing else is to be said there.

        It may wait since before this process: its condition then stays as old as it is.
        """
        condition = record.pod.condition(POD_SCHEDULED)
        waits = condition is not None and condition.status == "False"
        return cls(record.key, record.uid, message, event or message, reason=reason, known_to_wait=waits)


@dataclass(frozen=True, slots=True)
class _News:
    """What is to be written about one incarnation of a pod; ``None`` leaves a field as it is."""

    uid: str
    condition: tuple[str, str] | None = None
    """Reason and message."""
    turned: bool = False
    """Whether the condition was not False before."""
    nominated: str | None = None
    failures: int = 0
    """How often writing this has failed."""


class PodStatusWriter:
    """Writes the status of pending pods in the background. Mutable: it remembers what it said."""

    def __init__(self, client: Client, events: EventRecorder, *, event_reason: str) -> None:
        self._client = client
        self._events = events
        self._event_reason = event_reason
        self._said: dict[Key, tuple[str, str, str]] = {}
        self._outbox: OrderedDict[Key, _News] = OrderedDict()
        self._being_written: dict[Key, asyncio.Future[None]] = {}
        self._unwritten: dict[Key, _News] = {}
        self._writers: set[asyncio.Task[None]] = set()

    def waits(self, verdict: PodVerdict) -> None:
        """Say why a pod waits, in its condition and an event, unless that was the last thing said; returns at once."""
        key, uid = verdict.pod, verdict.uid
        said = (uid, verdict.reason, verdict.message)
        before = self._said.get(key)
        if before == said:
            return
        self._said[key] = said
        reason = SCHEDULER_ERROR if verdict.reason == SCHEDULER_ERROR else self._event_reason
        self._events.event(pod_reference(key, uid), "Warning", reason, verdict.event)
        turned = not verdict.known_to_wait and (before is None or before[0] != uid)
        news = self._news(key, uid)
        self._put(key, replace(news, condition=(verdict.reason, verdict.message), turned=news.turned or turned))

    def all_wait(self, pods: Iterable[PodRecord], reason: str, message: str) -> None:
        """Say the same of many, in their conditions and in events."""
        for record in pods:
            self.waits(PodVerdict.of(record, reason, message))

    def last_reason(self, pod: Key, uid: str) -> str:
        """Return the reason that was said last of an incarnation of a pod; empty if none was."""
        said = self._said.get(pod)
        return said[1] if said is not None and said[0] == uid else ""

    def nominate(self, pod: Key, uid: str, node: str) -> None:
        """Say which node a pod was promised; an empty one takes the promise back."""
        self._put(pod, replace(self._news(pod, uid), nominated=node))

    def about_to_bind(self, pod: Key) -> Awaitable[None] | None:
        """Drop what was to be said about a pod; what is returned, if anything, is to be awaited before it is bound."""
        self.forget(pod)
        return self._being_written.get(pod)

    def forget(self, pod: Key) -> None:
        """Drop what was said, or was to be said, about a pod that was bound or is gone."""
        self._said.pop(pod, None)
        self._outbox.pop(pod, None)
        self._unwritten.pop(pod, None)

    async def flush(self) -> None:
        """Wait until everything has been written."""
        while self._writers:
            await asyncio.wait(self._writers)

    async def close(self) -> None:
        """Write what can be written in a moment; the rest is dropped: the next scheduler process says it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSING_SECONDS):
                await self.flush()
        self._outbox.clear()
        for writer in self._writers:
            writer.cancel()
        await self.flush()

    def _news(self, key: Key, uid: str) -> _News:
        waiting = self._outbox.get(key)
        return waiting if waiting is not None and waiting.uid == uid else _News(uid)

    def _put(self, key: Key, news: _News) -> None:
        self._outbox[key] = news
        self._unwritten.pop(key, None)
        if len(self._writers) < _IN_FLIGHT:
            self._writers.add(asyncio.create_task(self._write_all(), name="status of pods"))

    async def _write_all(self) -> None:
        try:
            while (key := next((key for key in self._outbox if key not in self._being_written), None)) is not None:
                news = self._outbox.pop(key)
                written = self._being_written[key] = asyncio.get_running_loop().create_future()
                try:
                    await self._write(key, news)
                finally:
                    del self._being_written[key]
                    written.set_result(None)
        finally:
            self._writers.remove(asyncio.current_task())  # type: ignore[arg-type]

    async def _write(self, key: Key, news: _News) -> None:
        # The uid makes the write fail for a pod of the same name that came later.
        patch = {"metadata": {"uid": news.uid}, "status": self._status(news)}
        try:
            await self._client.patch(
                POD, key.name, patch, key.namespace, kind=PatchKind.STRATEGIC, subresource="status"
            )
        except (NotFound, Conflict, Invalid):
            self._said.pop(key, None)
        except KubeError as error:
            # Nothing need happen in the cluster that would have it said again, and of a gang all pods have to say it.
            again = self._unwritten[key] = replace(news, failures=news.failures + 1)
            pause = exponential(news.failures, first=_FIRST_PAUSE, longest=_LONGEST_PAUSE)
            asyncio.get_running_loop().call_later(pause, self._write_again, key, again)
            log.warning("status of a pod not written", pod=str(key), error=str(error))

    def _write_again(self, key: Key, news: _News) -> None:
        if self._unwritten.get(key) is news:
            self._put(key, news)

    def _status(self, news: _News) -> JSON:
        status: JSON = {}
        if news.condition is not None:
            reason, message = news.condition
            condition = {"type": POD_SCHEDULED, "status": "False", "reason": reason, "message": message}
            if news.turned:
                condition["lastTransitionTime"] = timestamp(self._client.runtime.clock.now())
            status["conditions"] = [condition]
        if news.nominated is not None:
            status["nominatedNodeName"] = news.nominated or None
        return status


def preempted(uid: str, *, by: str, now: datetime) -> JSON:
    """Return the strategic merge patch by which a pod says that a scheduler preempts it, as kube-scheduler does."""
    condition = {
        "type": DISRUPTION_TARGET,
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": f"{by}: preempting to accommodate a higher priority pod",
        "lastTransitionTime": timestamp(now),
    }
    return {"metadata": {"uid": uid}, "status": {"conditions": [condition]}}

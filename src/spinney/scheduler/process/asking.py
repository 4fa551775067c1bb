"""Asking victims on a cluster: annotations on their pods, events, and what is counted of it.

Everything a later cycle needs is on the pods. What is being written counts from when it was decided; a write that fails
is forgotten, and the next cycle decides anew.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import structlog

from spinney.api.core import POD
from spinney.api.time import timestamp
from spinney.binding.placement import pod_reference
from spinney.cluster.pods import PodKey
from spinney.gangs.checkpoints import EvictionRequest, annotations_of, is_ready
from spinney.gangs.tree import GangKey
from spinney.kube.client import Client, PatchKind
from spinney.kube.errors import Conflict, Invalid, KubeError, NotFound
from spinney.kube.events import EventRecorder
from spinney.reporting.verdicts import REQUESTED
from spinney.scheduler.framework.lost_work import lost_gpu_seconds
from spinney.scheduler.framework.results import Asked, Eviction, Withdrawn
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.process.cycle_metrics import CycleMetrics

log = structlog.get_logger()

WITHDRAWN: Final = "CheckpointRequestWithdrawn"
READY: Final = "ready"
TIMED_OUT: Final = "timed_out"
PARALLEL: Final = 16
_ASK_AGAIN: Final = 30.0
"""Seconds after which a request that could not be written is decided anew."""


@dataclass(frozen=True, slots=True)
class Loss:
    """What the eviction of a pod costs its gang, and how its gang came to it; the outcome is empty if nobody asked."""

    gang: GangKey
    action: str
    outcome: str
    gpu_seconds: float


class Asking:
    """Asks pods to be ready to go, and takes that back. Mutable through the inventory, which knows what is written."""

    def __init__(
        self,
        client: Client,
        events: EventRecorder,
        inventory: Inventory,
        metrics: CycleMetrics,
        *,
        wake: Callable[[], None],
    ) -> None:
        self._client = client
        self._events = events
        self._inventory = inventory
        self._metrics = metrics
        self._wake = wake
        self._slots = asyncio.Semaphore(PARALLEL)

    def assume(self, asked: Sequence[Asked], withdrawn: Sequence[Withdrawn]) -> None:
        """Have the next cycle see what is about to be written."""
        requests = self._inventory.requests
        for each in asked:
            requests.assume(each.pod, each.uid, each.request)
        for taken_back in withdrawn:
            requests.assume(taken_back.asked.pod, taken_back.asked.uid, None)

    async def ask(self, asked: Sequence[Asked]) -> None:
        """Write requests on pods, and tell those that are given time."""
        self._metrics.checkpoints.labels("asked").inc(len({each.gang for each in asked if each.request.waits}))
        await asyncio.gather(*(self._write(each, each.request) for each in asked))

    async def withdraw(self, withdrawn: Sequence[Withdrawn]) -> None:
        """Take requests back, and tell those that were given time."""
        gangs = {each.asked.gang for each in withdrawn if each.asked.request.waits}
        self._metrics.checkpoints.labels("withdrawn").inc(len(gangs))
        await asyncio.gather(*(self._write(each.asked, None, each.why) for each in withdrawn))

    def reckon(self, evictions: Iterable[Eviction]) -> Mapping[PodKey, "Loss"]:
        """Return what becomes of each pod that is about to be evicted; to be counted once it is."""
        now = self._client.runtime.clock.now()
        asked = self._inventory.requests.all()
        losses: dict[PodKey, Loss] = {}
        for eviction in evictions:
            members = self._inventory.gangs.members(eviction.gang)
            found = members.pods.get(eviction.pod) if members is not None else None
            if members is None or found is None:
                continue
            said = asked.get(eviction.pod)
            outcome = ""
            if said is not None and said.waits:
                outcome = READY if is_ready(members, said) else TIMED_OUT
            lost = lost_gpu_seconds(members, [found[1]], now=now, asked=said)
            losses[eviction.pod] = Loss(eviction.gang, eviction.action, outcome, lost)
        return losses

    def count(self, losses: Iterable["Loss"]) -> None:
        """Count pods that were evicted: the work that is lost, and each gang that was asked once."""
        listed = list(losses)
        for gang, outcome in {(loss.gang, loss.outcome) for loss in listed}:
            if outcome:
                self._metrics.checkpoints.labels(outcome).inc()
                log.info("asked gang evicted", gang=str(gang), outcome=outcome)
        for loss in listed:
            self._metrics.lost_gpu_seconds.labels(loss.action).inc(loss.gpu_seconds)

    async def _write(self, asked: Asked, said: EvictionRequest | None, why: str = "") -> None:
        # The uid makes the write fail for a pod of the same name that came later.
        patch = {"metadata": {"uid": asked.uid, "annotations": annotations_of(said)}}
        try:
            async with self._slots:
                await self._client.patch(POD, asked.pod.name, patch, asked.pod.namespace, kind=PatchKind.MERGE)
        except (NotFound, Conflict, Invalid):
            self._forget(asked.pod)  # gone, or another pod by now
        except KubeError as error:
            log.warning("request not written, tried again later", pod=str(asked.pod), error=str(error))
            asyncio.get_running_loop().call_later(_ASK_AGAIN, self._forget, asked.pod)
        else:
            self._tell(asked, said, why)

    def _forget(self, pod: PodKey) -> None:
        self._inventory.requests.forget(pod)
        self._wake()

    def _tell(self, asked: Asked, said: EvictionRequest | None, why: str) -> None:
        if not asked.request.waits:
            return
        reference = pod_reference(asked.pod, asked.uid)
        if said is None:
            self._events.event(reference, "Normal", WITHDRAWN, f"The pod need not go: {why}")
        else:
            self._events.event(reference, "Warning", REQUESTED, _request_text(said, said.by))


def _request_text(said: EvictionRequest, by: datetime) -> str:
    return f"The pod is going to be evicted: {said.message}. Checkpoint and say so, or be evicted at {timestamp(by)}"

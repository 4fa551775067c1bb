"""Asking victims on a cluster: annotations on their pods, and events.

Everything that a scheduler needs later is on the pods. What is being written counts from when it was decided; a write
that fails is forgotten, and it is decided anew.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import structlog

from spinney.api.core import POD
from spinney.api.time import timestamp
from spinney.binding.gang_metrics import GangMetrics
from spinney.binding.placement import pod_reference
from spinney.cluster.pods import PodKey
from spinney.gangs.checkpoints import REQUESTED, Asked, EvictionRequest, Withdrawn, annotations_of
from spinney.gangs.eviction_requests import EvictionRequests
from spinney.kube.client import Client
from spinney.kube.errors import KubeError
from spinney.kube.events import EventRecorder
from spinney.kube.reconciling import annotate_exactly

log = structlog.get_logger()

WITHDRAWN: Final = "CheckpointRequestWithdrawn"
PARALLEL: Final = 16
_ASK_AGAIN: Final = 30.0
"""Seconds after which a request that could not be written is decided anew."""


@dataclass(frozen=True)
class Asking:
    """Asks pods to be ready to go, and takes that back. Mutable through the requests, which know what is written."""

    client: Client
    events: EventRecorder
    requests: EvictionRequests
    metrics: GangMetrics
    wake: Callable[[], None]
    _slots: asyncio.Semaphore = field(init=False, default_factory=lambda: asyncio.Semaphore(PARALLEL))

    def assume(self, asked: Sequence[Asked], withdrawn: Sequence[Withdrawn]) -> None:
        """Have the next decision see what is about to be written."""
        for each in asked:
            self.requests.assume(each.pod, each.uid, each.request)
        for taken_back in withdrawn:
            self.requests.assume(taken_back.asked.pod, taken_back.asked.uid, None)

    async def ask(self, asked: Sequence[Asked]) -> None:
        """Write requests on pods, and tell those that are given time."""
        self.metrics.checkpoints.labels("asked").inc(len({each.gang for each in asked if each.request.waits}))
        await asyncio.gather(*(self._write(each, each.request) for each in asked))

    async def withdraw(self, withdrawn: Sequence[Withdrawn]) -> None:
        """Take requests back, and tell those that were given time."""
        gangs = {each.asked.gang for each in withdrawn if each.asked.request.waits}
        self.metrics.checkpoints.labels("withdrawn").inc(len(gangs))
        await asyncio.gather(*(self._write(each.asked, None, each.why) for each in withdrawn))

    async def _write(self, asked: Asked, said: EvictionRequest | None, why: str = "") -> None:
        try:
            async with self._slots:
                is_written = await annotate_exactly(self.client, POD, asked.pod, asked.uid, annotations_of(said))
        except KubeError as error:
            log.warning("request not written, tried again later", pod=str(asked.pod), error=str(error))
            asyncio.get_running_loop().call_later(_ASK_AGAIN, self._forget, asked.pod)
        else:
            if is_written:
                self._tell(asked, said, why)
            else:
                self._forget(asked.pod)

    def _forget(self, pod: PodKey) -> None:
        self.requests.forget(pod)
        self.wake()

    def _tell(self, asked: Asked, said: EvictionRequest | None, why: str) -> None:
        if not asked.request.waits:
            return
        reference = pod_reference(asked.pod, asked.uid)
        if said is None:
            self.events.event(reference, "Normal", WITHDRAWN, f"The pod need not go: {why}")
        else:
            end = f"Checkpoint and say so, or be evicted at {timestamp(said.by)}"
            text = f"The pod is going to be evicted: {said.message}. {end}"
            self.events.event(reference, "Warning", REQUESTED, text)

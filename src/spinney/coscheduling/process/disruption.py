"""Taking victims away: they are told why, then deleted with their grace period.

The victims of one pod or group are known together at the end of its scheduling cycle. If one of them declares that it
checkpoints they are asked first (``ask``), and go later. What a victim loses is reckoned when it is to go (``reckon``)
and counted once it is deleted. A victim that only waits at Permit loses its node at once; there is nothing to delete.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import structlog

from spinney.api.core import POD
from spinney.binding.placement import pod_reference
from spinney.cluster.pods import PodRecord
from spinney.cluster.statuses import PodStatus
from spinney.coscheduling.groups.waiting import WaitingPods
from spinney.kube.client import Client, PatchKind
from spinney.kube.errors import Conflict, KubeError, NotFound
from spinney.kube.events import EventRecorder
from spinney.kube.keys import Key
from spinney.reporting.pods import preempted
from spinney.runtime.tasks import BackgroundTasks

log = structlog.get_logger()

PARALLEL: Final = 16


@dataclass(frozen=True, slots=True)
class _Victims:
    """Who goes for one pod or group, and from which node."""

    beneficiary: PodRecord
    leaving: dict[Key, tuple[PodRecord, str]] = field(default_factory=dict)


@dataclass(eq=False)
class GroupEvictions:
    """Carries out preemption in the background. Mutable: it knows who was chosen."""

    client: Client
    events: EventRecorder
    waiting: WaitingPods
    leaving: dict[Key, None]
    background: BackgroundTasks
    ask: Callable[[Sequence[PodRecord], PodRecord], bool]
    reckon: Callable[[PodRecord], Callable[[], None]]

    def __post_init__(self) -> None:
        self._chosen: dict[Key, _Victims] = {}
        self._slots = asyncio.Semaphore(PARALLEL)

    def preempt(self, victims: Sequence[PodRecord], beneficiary: PodRecord, node: str) -> None:
        """Take ``victims`` from ``node`` for the sake of ``beneficiary``."""
        names = [str(victim.key) for victim in victims]
        log.info("preempting", node=node, victims=names, beneficiary=str(beneficiary.key))
        for victim in victims:
            waiting = self.waiting.get(victim.key)
            if waiting is not None:
                waiting.reject("DefaultPreemption", f"preempted by {beneficiary.key} of higher priority")
            elif victim.status is not PodStatus.RELEASING:
                self.leaving[victim.key] = None
                if not self._chosen:
                    asyncio.get_running_loop().call_soon(self.carry_out)
                chosen = self._chosen.setdefault(beneficiary.key, _Victims(beneficiary))
                chosen.leaving[victim.key] = victim, node

    def evict(self, victim: PodRecord, beneficiary: PodRecord, node: str) -> None:
        """Take one victim away now."""
        self.leaving[victim.key] = None
        self.background.begin(self._delete(victim, beneficiary, node, self.reckon(victim)))

    def carry_out(self) -> None:
        """Ask the victims that were chosen since the last time, or take them away; at the latest between two bursts."""
        chosen, self._chosen = self._chosen, {}
        for each in chosen.values():
            if self.ask([victim for victim, _ in each.leaving.values()], each.beneficiary):
                for key in each.leaving:
                    self.leaving.pop(key, None)  # it stays for now
            else:
                for victim, node in each.leaving.values():
                    self.evict(victim, each.beneficiary, node)

    async def _delete(self, victim: PodRecord, beneficiary: PodRecord, node: str, count: Callable[[], None]) -> None:
        key = victim.key
        now = self.client.runtime.clock.now()
        patch = preempted(victim.uid, by=beneficiary.pod.spec.scheduler_name, now=now)
        try:
            async with self._slots:
                await self.client.patch(
                    POD, key.name, patch, key.namespace, kind=PatchKind.STRATEGIC, subresource="status"
                )
                await self.client.delete(POD, key.name, key.namespace, uid=victim.uid)
        except (NotFound, Conflict):
            self.leaving.pop(victim.key, None)  # it is gone already
            return
        except KubeError as error:
            self.leaving.pop(victim.key, None)
            log.warning("victim not deleted", pod=str(key), error=str(error))
            return
        count()
        message = f"Preempted by pod {beneficiary.uid} on node {node}"
        self.events.event(pod_reference(key, victim.uid), "Normal", "Preempted", message)

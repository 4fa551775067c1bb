"""What becomes of a cycle's decisions on a cluster: binds, evictions, and what is said about the rest.

Decisions are checked against the ledger as it is by then (:mod:`spinney.scheduler.process.commit`), assumed there, and
carried out in the background while the cycle goes on, or the next one runs. :class:`Effects` is the seam: a scheduler
that only watches (:mod:`spinney.scheduler.process.shadow`) has other effects.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

import msgspec
import structlog

from spinney.api.core import Pod
from spinney.api.events import ObjectReference
from spinney.binding.asking import Asking
from spinney.binding.binder import Binder
from spinney.binding.evicting import Disruption, Evictor, Victim
from spinney.binding.placement import BindFailure, ClaimAllocation, GangPlacement, Placement
from spinney.cluster.statuses import ACTIVE_ALLOCATED, TERMINAL, PodStatus
from spinney.gangs.tree import GangKey
from spinney.kube.cache import Change
from spinney.kube.client import Client
from spinney.kube.errors import Conflict, NotFound
from spinney.kube.keys import Key
from spinney.kube.retrying import exponential
from spinney.reporting.kai_groups import KaiGroupStatus
from spinney.reporting.pod_gangs import PodGangStatusKind
from spinney.reporting.pods import POD_SCHEDULED, SCHEDULER_ERROR, UNSCHEDULABLE, PodStatusWriter, PodVerdict
from spinney.reporting.verdicts import WAITING_FOR_ROOM
from spinney.runtime.tasks import BackgroundTasks
from spinney.scheduler.framework.results import NOT_READY, Binding, CycleResult, Eviction, Pipeline, Unschedulable
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.process.commit import BookPositions, assume_gang, by_gang, changes_since, forget
from spinney.scheduler.process.cycle_metrics import CycleMetrics
from spinney.scheduler.process.gang_references import gang_reference
from spinney.scheduler.process.gang_releaser import GangReleaser
from spinney.scheduler.process.kept_places import KeptPlaces
from spinney.scheduler.process.losses import Losses
from spinney.scheduler.process.node_requests import NodeRequests
from spinney.scheduler.process.verdicts import Verdicts
from spinney.scheduler.process.virtual_gangs import VirtualGangs

log = structlog.get_logger()

_FIRST_HOLD, _LONGEST_HOLD = 1.0, 30.0
_EVICT_AGAIN = 30.0
"""Seconds after which victims that could not be evicted are looked for anew, if nothing else happens before."""


_WAITING_OR_PLACED: Final = frozenset(PodStatus) - TERMINAL - {PodStatus.GATED}
"""Neither held back by a gate nor over."""


class Effects(Protocol):
    """What is done with decisions."""

    def pod_changed(self, change: Change[Pod]) -> None:
        """Take in a change of a pod, before the inventory does."""

    def before_cycle(self) -> None:
        """Bring the inventory up to date before a cycle looks at it."""

    def bind(self, binds: Sequence[Binding], *, decided_at: BookPositions) -> None:
        """Begin to bind pods, whole gangs of them, while the cycle may still be deciding; returns at once.

        ``decided_at`` is when the cycle looked at the cluster.
        """

    def conclude(self, result: CycleResult) -> None:
        """Begin to carry out everything but the binds of a cycle that has ended; returns at once."""

    async def finish(self) -> None:
        """Complete what was begun."""


class _Wait(msgspec.Struct, frozen=True):
    """Since when a gang could have had nodes: the creation of its youngest pod."""

    since: datetime
    queue: str
    pods: int


@dataclass(eq=False)
class ClusterEffects:
    """Binds, evicts and reports. Mutable: it knows what is under way."""

    client: Client
    inventory: Inventory
    binder: Binder
    evictor: Evictor
    pod_status: PodStatusWriter
    verdicts: Verdicts
    pod_gangs: PodGangStatusKind
    kai_groups: KaiGroupStatus
    asking: Asking
    kept_places: KeptPlaces
    releaser: GangReleaser
    virtual: VirtualGangs
    node_requests: NodeRequests
    metrics: CycleMetrics
    tells_gangs: bool
    """Whether pods of a gang that are bound together have one event, of the gang."""
    wake: Callable[[], None]
    """Asks for another cycle."""

    def __post_init__(self) -> None:
        self._losses = Losses(self.inventory, self.metrics, self.client.runtime.clock)
        self._under_way = BackgroundTasks()
        self._refusals: dict[Key, int] = {}
        self._leaving: set[str] = set()
        """The uids of pods whose eviction is under way."""

    def pod_changed(self, change: Change[Pod]) -> None:
        """Drop what was said about a pod that is gone, and look at the gang that loses it."""
        pod = change.new
        if pod is not None:
            self.virtual.pod_coming(pod)
        else:
            self.pod_status.forget(change.key)
            self._refusals.pop(change.key, None)
        if pod is None or pod.terminal or pod.metadata.deletion_timestamp is not None:
            record = self.inventory.cluster.pod(change.key)
            if record is not None:
                self.releaser.pod_going(record)

    def before_cycle(self) -> None:
        """Take virtual gangs out whose real pods have come: no cycle sees both."""
        self.virtual.before_cycle()

    def bind(self, binds: Sequence[Binding], *, decided_at: BookPositions) -> None:
        """Begin to bind the gangs whose decision still holds."""
        cluster, claims = self.inventory.cluster, self.inventory.claims
        changed = changes_since(cluster, decided_at)
        for gang, together in by_gang(binds).items():
            wait = self._wait_of(gang, together)
            try:
                problem = assume_gang(cluster, claims, together, changed=changed)
                # Before anything is awaited: a claim may be deleted before the task begins.
                placements = tuple(map(self._placement, together)) if problem is None else ()
            except Exception as error:  # noqa: BLE001 - one gang, one failure
                self._set_back(gang, together, error)
                continue
            if problem is None and self.virtual.has(gang):
                self._under_way.begin(self.virtual.start(gang, together), f"start {gang}")
            elif problem is None:
                self._under_way.begin(self._try_to_bind(gang, together, placements, wait), f"bind {gang}")
            else:
                self.metrics.outdated.inc()
                self.wake()

    def conclude(self, result: CycleResult) -> None:
        """Begin to evict; what could not be placed is reported."""
        for gang in dict.fromkeys(each.gang for each in result.evictions if self.virtual.has(each.gang)):
            self._under_way.begin(self.virtual.stop(gang), f"stop {gang}")
        evictions = {
            each.pod: each
            for each in result.evictions
            if each.uid not in self._leaving and not self.virtual.has(each.gang)
        }
        self._leaving.update(eviction.uid for eviction in evictions.values())
        for disruption in self._disruptions(list(evictions.values())):
            self._under_way.begin(self._try_to_evict(disruption, evictions), f"evict for {disruption.name}")
        self._ask(result)
        self.kai_groups.started(result.started, self.client.runtime.clock.now())
        for gang in result.started:
            self.verdicts.look_at(gang)
        self._report(result)

    async def finish(self) -> None:
        """Wait for the binds and evictions under way, but not for volumes; they are cancelled if this is."""
        self.binder.interrupt()
        await self._under_way.finish()
        await self.pod_status.close()

    def _ask(self, result: CycleResult) -> None:
        """Ask victims that checkpoint, take back what nobody needs, and say which places are kept meanwhile."""
        self.asking.assume(result.asked, result.withdrawn)
        if result.withdrawn:
            self._under_way.begin(self.asking.withdraw(result.withdrawn), "withdraw requests")
        if result.asked:
            self._under_way.begin(self.asking.ask(result.asked), "ask victims")
        self.kept_places.follow(result)

    def _wait_of(self, gang: GangKey, binds: Sequence[Binding]) -> _Wait | None:
        """Return how a gang that has no node yet has waited; ``None`` if it has some, and only grows."""
        found = self.inventory.gangs.members(gang)
        if found is None or any(status in ACTIVE_ALLOCATED for _, status in found.counts):
            return None
        pods = (found.pods.get(bind.pod) for bind in binds)
        created = [pod[1].created for pod in pods if pod is not None and pod[1].created is not None]
        return _Wait(max(created), found.gang.queue, len(found.pods)) if created else None

    async def _try_to_bind(
        self, gang: GangKey, binds: Sequence[Binding], placements: tuple[Placement, ...], wait: _Wait | None
    ) -> None:
        try:
            await self._bind(gang, binds, placements, wait)
        except Exception as error:  # noqa: BLE001 - one gang, one failure
            self._set_back(gang, binds, error)

    def _set_back(self, gang: GangKey, binds: Sequence[Binding], error: Exception) -> None:
        """Say on the pods of a gang that binding them failed; what they hold is given back when that is settled."""
        log.error("gang set back", gang=str(gang), doing="binding", exc_info=error)
        self.metrics.errors.labels("binding").inc()
        message = f"the scheduler failed while binding it: {type(error).__name__}: {error}; it is tried again later"
        for bind in binds:
            self.pod_status.waits(PodVerdict(bind.pod, bind.uid, message, message, reason=SCHEDULER_ERROR))
        asyncio.get_running_loop().call_later(_LONGEST_HOLD, self._give_back, gang, binds)

    async def _bind(
        self, gang: GangKey, binds: Sequence[Binding], placements: tuple[Placement, ...], wait: _Wait | None
    ) -> None:
        clock = self.client.runtime.clock
        began = clock.monotonic()
        outcome = await self.binder.bind(GangPlacement(str(gang), placements, told_of=self._told_of(gang, binds)))
        self.metrics.gangs.bound(clock.monotonic() - began, failed=outcome.failed)
        if outcome.bound and wait is not None:
            waited = (clock.now() - wait.since).total_seconds()
            self.metrics.gangs.waited(waited, queue=wait.queue, pods=wait.pods)
        self.metrics.bound.inc(len(outcome.bound))
        for placement in outcome.bound:
            self.pod_status.forget(placement.pod)
            self._refusals.pop(placement.pod, None)
        self.verdicts.look_at(gang)
        if outcome.failed:
            self.metrics.refused.inc(len(outcome.failed))
            lost = {failure.placement.pod for failure in outcome.failed}
            self._give_back_later(gang, outcome.failed, [bind for bind in binds if bind.pod in lost])

    def _told_of(self, gang: GangKey, binds: Sequence[Binding]) -> ObjectReference | None:
        """Return what the one event of these binds is about; ``None`` where each pod has its own."""
        found = self.inventory.gangs.members(gang) if self.tells_gangs and len(binds) > 1 else None
        return None if found is None else gang_reference(found.gang)

    def _placement(self, bind: Binding) -> Placement:
        book = self.inventory.claims
        claims = tuple(ClaimAllocation(key, devices, book.config(key, devices)) for key, devices in bind.claims.items())
        return Placement(
            bind.pod, bind.uid, bind.node, annotations=bind.annotations, claims=claims, gpu_groups=bind.gpu_groups
        )

    def _give_back_later(self, gang: GangKey, failed: Sequence[BindFailure], binds: Sequence[Binding]) -> None:
        """Hold the room of pods that were not bound for a while, longer each time, and then place them anew."""
        pods = [failure.placement.pod for failure in failed]
        for pod in pods:
            self._refusals[pod] = self._refusals.get(pod, 0) + 1
        times = max(self._refusals[pod] for pod in pods)
        if times == 1 and all(isinstance(failure.error, NotFound | Conflict) for failure in failed):
            delay = 0.0  # not these pods any more, so there is nothing to hold room for
        else:
            delay = exponential(times - 1, first=_FIRST_HOLD, longest=_LONGEST_HOLD)
        asyncio.get_running_loop().call_later(delay, self._give_back, gang, binds)

    def _give_back(self, gang: GangKey, binds: Sequence[Binding]) -> None:
        for bind in binds:
            forget(self.inventory.cluster, self.inventory.claims, bind)
            if self.inventory.cluster.pod(bind.pod) is None:
                self._refusals.pop(bind.pod, None)  # it was counted after the pod had gone
        self.releaser.look(gang)
        self.wake()

    def _disruptions(self, evictions: Sequence[Eviction]) -> Iterator[Disruption]:
        """Return evictions by purpose: what one gang gains by them, or, where nobody does, the gang that loses."""
        purposes: dict[GangKey, list[Eviction]] = {}
        for eviction in evictions:
            purposes.setdefault(eviction.beneficiary or eviction.gang, []).append(eviction)
        for purpose, together in purposes.items():
            found = self.inventory.gangs.members(purpose)
            for_others = found is not None and together[0].beneficiary is not None
            yield Disruption(
                name=str(purpose),
                victims=tuple(Victim(each.pod, each.uid, each.message) for each in together),
                beneficiary=gang_reference(found.gang) if found is not None and for_others else None,
            )

    async def _try_to_evict(self, disruption: Disruption, evictions: Mapping[Key, Eviction]) -> None:
        try:
            await self._evict(disruption, evictions)
        except Exception:
            log.exception("eviction failed", purpose=disruption.name)
            self.metrics.errors.labels("evicting").inc()
            asyncio.get_running_loop().call_later(_EVICT_AGAIN, self.wake)
        finally:
            self._leaving.difference_update(victim.uid for victim in disruption.victims)

    async def _evict(self, disruption: Disruption, evictions: Mapping[Key, Eviction]) -> None:
        losses = self._losses.reckon(evictions[victim.pod] for victim in disruption.victims)
        gone = await self.evictor.evict(disruption)
        now = self.client.runtime.clock.now()
        self._losses.count(losses[victim.pod] for victim in gone if victim.pod in losses)
        for victim in gone:
            eviction = evictions[victim.pod]
            gang = eviction.gang
            self.metrics.gangs.evicted(1, queue=eviction.queue, reason=eviction.action)
            self.inventory.note_eviction(gang, now)
            self.pod_gangs.disrupted(gang, victim.message)
            self.kai_groups.evicted([gang], now)
            self.verdicts.look_at(gang)
        if len(gone) < len(disruption.victims):
            asyncio.get_running_loop().call_later(_EVICT_AGAIN, self.wake)

    def _report(self, result: CycleResult) -> None:
        told = [each for each in result.unschedulable if not self.virtual.has(each.gang) and not self._is_opening(each)]
        self.virtual.refused([each for each in result.unschedulable if self.virtual.has(each.gang)])
        promised = {each.pod: each for each in result.pipelines}
        for each in promised.values():
            if each.pod not in self.kept_places:
                self._promise(each)
        asked = self.node_requests.lack_nodes([each for each in told if each.pod_reason == UNSCHEDULABLE])
        for refused in told:
            found = self.inventory.gangs.members(refused.gang)
            if found is None:
                continue
            reason, message = asked.get(refused.gang) or (refused.pod_reason, refused.message)
            waiting = (record for _, record in found.pods.values() if record.status is PodStatus.PENDING)
            self.pod_status.all_wait((each for each in waiting if each.key not in promised), reason, message)
        self.verdicts.refused(told, {gang: text.message for gang, text in asked.items()})

    def _promise(self, promised: Pipeline) -> None:
        """Take back that a pod needs a new node, if it said so: it has a node where others are leaving."""
        record = self.inventory.cluster.pod(promised.pod)
        if record is None:
            return
        condition = record.pod.condition(POD_SCHEDULED)
        asks = condition is not None and condition.reason == UNSCHEDULABLE
        if asks or self.pod_status.last_reason(record.key, record.uid) == UNSCHEDULABLE:
            message = f"node {promised.node} is promised to the pod; it waits until those that leave it are gone"
            self.pod_status.all_wait([record], WAITING_FOR_ROOM, message)

    def _is_opening(self, refused: Unschedulable) -> bool:
        """Tell whether a gang only lacked pods whose gates are opened one by one: there is no reason to publish yet.

        The last gates may have been opened since the cycle began; then the next one decides about all pods.
        """
        found = self.inventory.gangs.members(refused.gang)
        if found is None or any(error.reason != NOT_READY for error in refused.errors):
            return False
        gated = any(status is PodStatus.GATED for _, status in found.counts)
        return gated or found.has_minimum(_WAITING_OR_PLACED)

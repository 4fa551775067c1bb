"""The session scheduler as a process: watches in, decisions out.

Watch events update the inventory in place. A cycle runs when something happened that could change a decision, and not
otherwise: a cluster at rest costs nothing. What only gives room can wait a moment while nobody waits for it, and so
can a pod whose gang has too few pods to start. Where time alone will change a decision (a grace period ends, a job may
disturb others from then on), the cycle before says when, and the next one runs then. The cycle works on a snapshot, in
a worker thread in production, while the loop goes on taking events, renewing the lease and binding: what a cycle has
decided is handed over while it decides the rest, so that the API server is not idle meanwhile.
"""

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import msgspec
import structlog

from spinney.api import kai
from spinney.api.core import NODE, PERSISTENT_VOLUME_CLAIM, POD, Pod
from spinney.api.resource import Resource
from spinney.binding.asking import Asking
from spinney.binding.binder import Binder
from spinney.binding.device_claims import DeviceClaims
from spinney.binding.evicting import Evictor
from spinney.binding.repair import PartGangs
from spinney.binding.shared_devices import SharedDeviceWriter
from spinney.binding.volumes import LateVolumes
from spinney.cluster.pods import PodRecord
from spinney.cluster.statuses import WAITING
from spinney.gangs.book import GangEntry
from spinney.gangs.sources import bare
from spinney.kube.cache import Change, WatchCache
from spinney.kube.client import Client
from spinney.kube.discovery import served
from spinney.kube.manager import Manager
from spinney.kube.rounds import Rounds
from spinney.reporting.controller import StatusController, StatusKind
from spinney.reporting.kai_groups import KaiGroupStatus
from spinney.reporting.pod_gangs import PodGangStatusKind
from spinney.reporting.pod_groups import GROUP_KINDS, ScheduledCondition
from spinney.reporting.pods import PodStatusWriter
from spinney.reporting.queues import QueueStatuses
from spinney.reporting.unreadable import UnreadableObjects
from spinney.reporting.volcano_groups import VolcanoGroupStatus
from spinney.runtime import collect_young
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.cycle.scheduler import Scheduler
from spinney.scheduler.framework.jobs import READY
from spinney.scheduler.framework.plugin import PluginRegistry
from spinney.scheduler.framework.results import CycleResult
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.snapshot import Snapshot
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.intake.sources import COMPONENT, OPTIONAL_KINDS, is_indispensable, type_of
from spinney.scheduler.plugins import default_registry
from spinney.scheduler.process.abandoned_claims import give_back_claims
from spinney.scheduler.process.commit import BookPositions, portion
from spinney.scheduler.process.cycle_log import CycleLog
from spinney.scheduler.process.cycle_metrics import CycleMetrics
from spinney.scheduler.process.effects import ClusterEffects, Effects
from spinney.scheduler.process.endpoint import SchedulerEndpoint
from spinney.scheduler.process.gang_releaser import GangReleaser
from spinney.scheduler.process.kept_places import KeptPlaces
from spinney.scheduler.process.node_requests import NodeRequests
from spinney.scheduler.process.own_plugins import Completing, WholeDevices, with_plugin_first
from spinney.scheduler.process.queue_books import live_books, queue_statuses
from spinney.scheduler.process.queue_metrics import QueueMetrics
from spinney.scheduler.process.verdicts import Verdicts
from spinney.scheduler.process.virtual_gangs import VirtualGangs
from spinney.scheduler.process.waking import (
    Alarm,
    asks_for_another_amount,
    confirms,
    may_change_decisions,
    only_gives_room,
)

log = structlog.get_logger()

CYCLES = "scheduling cycles"
UNSCHEDULABLE_EVENT = "Unschedulable"


class CyclePace(msgspec.Struct, frozen=True):
    """How long things take, in seconds."""

    gather: float = 0.005
    """From the event that wakes a cycle to its start, so that what comes together is decided together: at least."""
    gather_longest: float = 0.02
    """Up to this it is as long as the last cycle took: where pods come all the time, cycles run half of it."""
    ends: float = 1.0
    """From the end of a pod on its own to a cycle, while nobody waits for its room."""
    short: float = 1.0
    """From a pod of a gang that has too few pods to start, to a cycle that counts them anew: at least."""
    short_per_pod: float = 0.0005
    """And so much more for each pod that is there already: all of them are sorted to say what is lacking."""
    hand_over: float = 0.02
    """Between looks at what a cycle has decided so far."""
    slow: float = 30.0
    """After which a cycle is reported with what it is busy with."""
    stuck: float = 120.0
    """After which a cycle that has not ended costs the lease."""

    def gathering(self, last_cycle: float) -> float:
        """Return how long to gather after a cycle that took ``last_cycle``."""
        return min(max(self.gather, last_cycle), self.gather_longest)


class _Cycle:
    """A cycle under way in a worker thread, as the event loop sees it. Mutable."""

    def __init__(self) -> None:
        self.session: Session | None = None
        self._abandoned = False

    def opened(self, session: Session) -> None:
        """Show the session to the event loop."""
        self.session = session
        if self._abandoned:
            session.abandoned = True

    def abandon(self) -> bool:
        """Have the cycle stop before its next job; ``False`` if plugins are still opening, which may take long."""
        self._abandoned = True
        if self.session is None:
            return False
        self.session.abandoned = True
        return True


class SchedulerProcess:
    """The session scheduler on a cluster. Mutable; runs until :meth:`stop`.

    ``effects`` replaces what is done with decisions; by default they are carried out on the cluster. ``virtual`` made
    the gangs of the inventory that have no pods, if there are any; ``node_requests`` asks for nodes for gangs.
    ``served`` are the optional kinds that the API server serves, where that was asked before.
    """

    def __init__(
        self,
        client: Client,
        config: SchedulerConfig,
        *,
        manager: Manager | None = None,
        inventory: Inventory | None = None,
        registry: PluginRegistry | None = None,
        metrics: CycleMetrics | None = None,
        effects: Effects | None = None,
        virtual: VirtualGangs | None = None,
        node_requests: NodeRequests | None = None,
        served: frozenset[Resource] | None = None,
        pace: CyclePace = CyclePace(),  # noqa: B008 - a frozen value
    ) -> None:
        self.manager = manager or Manager(client, client.runtime)
        self.inventory = inventory or Inventory.for_config(config)
        self.cycles = 0
        self._last_cycle = 0.0
        """Seconds it took."""
        self._client = client
        self._served = served
        self._runtime = client.runtime
        self._pace = pace
        self._metrics = metrics or CycleMetrics()
        self._queue_metrics = QueueMetrics(self.inventory, self._metrics.gangs.queues)
        self._metrics.registry.register(self._queue_metrics)
        self._rounds = Rounds(self.manager, CYCLES, slow_seconds=pace.slow, stuck_seconds=pace.stuck)
        self._woken = Alarm()
        self._moment: datetime | None = None
        self._nobody_waits = False  # as the last cycle left it
        registry = registry if registry is not None else default_registry()
        events = self.manager.recorder(COMPONENT)
        pod_status = PodStatusWriter(client, events, event_reason=UNSCHEDULABLE_EVENT)
        self._queue_statuses = QueueStatuses(
            client, self.inventory.cluster, lambda: queue_statuses(live_books(self.inventory, self.inventory.queues))
        )
        self._verdicts = verdicts = Verdicts(self.inventory)
        names, cluster = self.inventory.scheduler_names, self.inventory.cluster
        pod_gangs = PodGangStatusKind(verdicts.score, lambda pod: cluster.pod(pod) is not None)
        kai_groups = KaiGroupStatus(node_pool=config.node_pool)
        kinds: list[StatusKind[Any]] = [pod_gangs, kai_groups, VolcanoGroupStatus(names)]
        kinds += [ScheduledCondition(resource, names=names) for resource in GROUP_KINDS]
        self._statuses = [StatusController(kind, verdicts, self.manager, events) for kind in kinds]
        self._part_gangs = PartGangs(grace_seconds=config.part_gang_grace_seconds)
        evictor = Evictor(client, events)
        self._releaser = GangReleaser(
            self._runtime.clock, self.inventory, self._part_gangs, evictor=evictor, metrics=self._metrics
        )
        self._volumes = LateVolumes(
            client, self.inventory.cluster, timeout_seconds=config.volume_binding_timeout_seconds
        )
        self._device_claims = DeviceClaims(client)
        steps = (self._volumes, self._device_claims, SharedDeviceWriter(client))
        self._writing = effects is None
        self._unreadable = UnreadableObjects(
            self.manager.metrics,
            cluster=self.inventory.cluster,
            writer=pod_status if self._writing else None,
            events=events if self._writing else None,
        )
        virtual, node_requests = virtual or VirtualGangs(), node_requests or NodeRequests()
        virtual.wake = node_requests.wake = self._woken.set
        self._effects: Effects = effects or ClusterEffects(
            client,
            self.inventory,
            evictor=evictor,
            binder=Binder(client, events, pre_bind=steps),
            pod_status=pod_status,
            verdicts=verdicts,
            pod_gangs=pod_gangs,
            kai_groups=kai_groups,
            asking=Asking(client, events, self.inventory.requests, self._metrics.gangs, wake=self._woken.set),
            kept_places=KeptPlaces(self.inventory, pod_status),
            releaser=self._releaser,
            virtual=virtual,
            node_requests=node_requests,
            metrics=self._metrics,
            tells_gangs=config.bind_events == "gangs",
            wake=self._woken.set,
        )
        ordered = with_plugin_first(config, registry, Completing.name, lambda _: Completing(self._part_gangs.keys))
        if self._writing and not config.device_reservation:
            ordered = with_plugin_first(ordered, registry, WholeDevices.name, WholeDevices)
        self._scheduler = Scheduler(
            ordered,
            self.inventory,
            runtime=self._runtime,
            registry=registry,
            metrics=self._metrics.registry,
            asks=self._writing,
        )
        self._log = CycleLog()
        self.endpoint = SchedulerEndpoint(self._scheduler, self._runtime.executor, self._log)
        self.manager.answer_others(self.endpoint.answer)
        self._reported: Mapping[Resource, Callable[[WatchCache[Any]], None]] = {
            kai.QUEUE: self._queue_statuses.follow,
            **{status.kind.resource: status.follow for status in self._statuses},
        }
        """Kinds whose status is written, and who follows them for that."""

    async def run(self) -> None:
        """Watch, schedule and bind until :meth:`stop`."""
        await self.prepare()
        await self.manager.run()

    async def prepare(self) -> None:
        """Give the manager everything to run; for a process that has other things to run with the same manager."""
        found = self._served
        if found is None:
            found = await served(self._client, OPTIONAL_KINDS)
        for resource in (POD, NODE, *(kind for kind in OPTIONAL_KINDS if kind in found)):
            self._follow(self._cache(resource))
        if self._writing:
            for resource, follow in self._reported.items():
                if resource in found:
                    follow(self._cache(resource))
            self._verdicts.tell(self._statuses)
            for status in self._statuses:
                self.manager.add(status.controller)
            self.manager.add_runnable("queue statuses", self._queue_statuses.run)
            self.manager.add_runnable("releases of part-bound gangs", self._releaser.run)
        self.manager.add_runnable(CYCLES, self._cycle_for_ever)
        missing = {resource: kind for resource, kind in OPTIONAL_KINDS.items() if resource not in found}
        self.manager.follow_later(missing, self._follow_late)

    def stop(self) -> None:
        """Ask for a graceful stop."""
        self.manager.stop()

    def _cache(self, resource: Resource) -> WatchCache[Any]:
        return self.manager.cache(resource, type_of(resource), optional=not is_indispensable(resource))

    # -- events ------------------------------------------------------------------------------------------------------

    def _follow_late(self, cache: WatchCache[Any]) -> None:
        self._follow(cache)
        if cache.resource in self._reported and self._writing:
            self._reported[cache.resource](cache)

    def _follow(self, cache: WatchCache[Any]) -> None:
        take_in = self._take_in_pod if cache.resource is POD else self._take_in
        cache.subscribe(self._unreadable.guarded(cache.resource, take_in))
        if cache.resource is PERSISTENT_VOLUME_CLAIM and self._writing:
            self._volumes.follow(cache)

    def _take_in_pod(self, change: Change[Pod]) -> None:
        self._effects.pod_changed(change)
        record = self.inventory.cluster.pod(change.key)
        confirmed = confirms(record, change.new)
        self._apply(change)
        resized = asks_for_another_amount(record, self.inventory.cluster.pod(change.key))
        if confirmed or self._woken.ringing or not (resized or may_change_decisions(change)):
            return
        if (short := self._short_gang(change)) is not None:
            self._woken.set_patiently(self._pace.short + self._pace.short_per_pod * len(short.pods))
        elif self._nobody_waits and record is not None and only_gives_room(change) and self._is_single(record):
            self._woken.set_within(self._pace.ends)
        else:
            self._woken.set()

    def _short_gang(self, change: Change[Pod]) -> GangEntry | None:
        """Return the gang of a pod that came, or lost a gate, if that still has too few pods to be tried."""
        record = self.inventory.cluster.pod(change.key)
        if record is None or record.status not in WAITING or not (change.old is None or change.old.gated):
            return None
        gangs = self.inventory.gangs
        gang = gangs.membership(record)[0]
        return entry if gang in gangs and (entry := gangs.entry(gang)).lacks(READY) else None

    def _is_single(self, record: PodRecord) -> bool:
        """Tell whether a pod is in no gang that may be broken without it."""
        return self.inventory.gangs.membership(record)[0].source == bare.SOURCE

    def _take_in(self, change: Change[Any]) -> None:
        self._apply(change)
        if may_change_decisions(change):
            self._woken.set()
            self._queue_statuses.look_again()  # a gang may be of another queue now, or of another priority

    def _apply(self, change: Change[Any]) -> None:
        found: msgspec.Struct | None = change.new
        if found is not None:
            self.inventory.apply(found)
        elif change.old is not None:
            self.inventory.delete(change.old)
            if isinstance(change.old, kai.Queue):
                self._metrics.gangs.forget_queue(change.key.name)

    # -- cycles ------------------------------------------------------------------------------------------------------

    async def _cycle_for_ever(self) -> None:
        """Run cycles for as long as this process leads, which may be more than once."""
        self._volumes.resume()
        if self._writing:
            await give_back_claims(self.inventory, self._device_claims)
        self._queue_metrics.active = True
        self._woken.set()
        try:
            while True:
                await self._until_woken()
                await self._runtime.clock.sleep(self._pace.gathering(self._last_cycle))
                self._woken.clear()
                if not await self._rounds.attempt(self._cycle):
                    self._woken.set()
        finally:
            self._queue_metrics.active = False
            self._metrics.stopped()
            await self._effects.finish()

    async def _until_woken(self) -> None:
        """Wait for something that can change a decision: an event, or the moment the last cycle named."""
        delay = None
        if self._moment is not None:
            delay = max(0.0, (self._moment - self._runtime.clock.now()).total_seconds())
        try:
            async with asyncio.timeout(delay):
                await self._woken.wait()
        except TimeoutError:
            log.debug("woken by time", moment=str(self._moment))

    async def _cycle(self) -> None:
        collect_young()  # the session of the cycle before, which nobody refers to any more
        started = self._runtime.clock.monotonic()
        self._effects.before_cycle()
        snapshot, seen = self.inventory.snapshot(), BookPositions.of(self.inventory.cluster)
        self._releaser.look_after_cycle(snapshot.gangs.pending)
        cycle = _Cycle()
        deciding = asyncio.ensure_future(self._runtime.executor.run(self._decide, snapshot, cycle))
        handed_over = 0
        while not deciding.done():
            try:
                await asyncio.wait({deciding}, timeout=self._pace.hand_over)
                self._rounds.takes(self._runtime.clock.monotonic() - started, self._scheduler.busy_with)
                handed_over = await self._hand_over(cycle, deciding, handed_over, seen)
            except asyncio.CancelledError:
                if cycle.abandon():
                    await asyncio.wait({deciding})
                    deciding.exception()
                raise
        result = await deciding
        self.cycles += 1
        self._moment = result.next_moment
        self._nobody_waits = _leaves_nothing(snapshot, result)
        if not self._nobody_waits:
            self._woken.hurry()  # pods that have ended meanwhile
        self._last_cycle = self._runtime.clock.monotonic() - started
        self._note(snapshot, result, self._last_cycle)
        self._effects.conclude(result)

    async def _hand_over(
        self, cycle: "_Cycle", deciding: asyncio.Future[CycleResult], start: int, seen: BookPositions
    ) -> int:
        """Begin the binds decided from ``start`` on, and return where those end.

        One portion after the other: the first pods are on their way while the last are checked against the ledger.
        """
        while cycle.session is not None:
            binds = cycle.session.binds
            end = portion(binds, start, complete=deciding.done())
            if end == start:
                break
            self._effects.bind(binds[start:end], decided_at=seen)
            start = end
            await asyncio.sleep(0)
        return start

    def _decide(self, snapshot: Snapshot, cycle: "_Cycle") -> CycleResult:
        """Open a session and decide in it; in a worker thread, to which a cycle is handed over once."""
        session = self._scheduler.open_session(snapshot)
        cycle.opened(session)
        try:
            self._scheduler.run_actions(session)
            return self._scheduler.result(session)
        finally:
            session.close()

    def _note(self, snapshot: Snapshot, result: CycleResult, seconds: float) -> None:
        self._metrics.cycle(result, seconds)
        self.endpoint.refused(result.unschedulable)
        now = self._runtime.clock.now()
        self._log.note(result, at=now, seconds=seconds, pending=len(snapshot.gangs.pending))
        if result.binds or result.evictions:
            log.info(
                "cycle decided",
                binds=len(result.binds),
                evictions=len(result.evictions),
                unschedulable=len(result.unschedulable),
                pending=len(snapshot.gangs.pending),
                seconds=round(seconds, 4),
            )


def _leaves_nothing(snapshot: Snapshot, result: CycleResult) -> bool:
    """Tell whether a cycle has placed all that waited, and nothing is under way that an end may matter for."""
    waiting = sum(snapshot.gangs.gangs[key].pending for key in snapshot.gangs.pending)
    open_matters = (
        result.evictions,
        result.asked,
        result.pipelines,
        result.unschedulable,
        result.next_moment,
        result.failures,
        result.errors,
        snapshot.asked,
        snapshot.gangs.broken,
        snapshot.gangs.orphans,
    )
    return waiting == len(result.binds) and not any(open_matters)

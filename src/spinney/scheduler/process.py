"""The session scheduler as a process: watches in, bindings and conditions out.

Watch events update the inventory in place. A cycle runs when something happened that could change a decision, and not
otherwise: a cluster at rest costs nothing. The cycle works on a snapshot, in a worker thread in production, while the
loop goes on taking events, renewing the lease and binding what earlier cycles decided. Decisions are checked against
the ledger as it is when the cycle ends (:mod:`spinney.scheduler.commit`) and then bound.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import structlog

from spinney.api.core import NODE, POD, Node, Pod
from spinney.api.podgang import POD_GANG, PodGang
from spinney.binding.binder import Binder
from spinney.binding.placement import GangPlacement, Placement
from spinney.binding.reporting import PodVerdict, Reporter
from spinney.cluster.pods import PodKey
from spinney.cluster.statuses import PodStatus
from spinney.kube.cache import Change, WatchCache
from spinney.kube.client import Client
from spinney.kube.discovery import served
from spinney.kube.errors import KubeError, NotFound
from spinney.kube.keys import Key
from spinney.kube.manager import Manager
from spinney.scheduler.commit import assume_gang, by_gang
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.cycle_metrics import CycleMetrics
from spinney.scheduler.gang_conditions import GangConditions
from spinney.scheduler.inventory import Inventory
from spinney.scheduler.plugin import PluginRegistry
from spinney.scheduler.results import Bind, CycleResult, Eviction, Unschedulable
from spinney.scheduler.scheduler import Scheduler
from spinney.scheduler.sources import OPTIONAL_KINDS
from spinney.scheduler.waking import may_change_decisions

log = structlog.get_logger()

COMPONENT = "spinney-scheduler"
UNSCHEDULABLE_EVENT = "Unschedulable"


@dataclass(frozen=True, slots=True)
class Pace:
    """How long to let events gather before a cycle, and to rest after one, in seconds."""

    gather: float = 0.02
    rest: float = 0.0


class SchedulerProcess:
    """The session scheduler on a cluster. Mutable; runs until :meth:`stop`."""

    def __init__(
        self,
        client: Client,
        config: SchedulerConfig,
        *,
        manager: Manager | None = None,
        inventory: Inventory | None = None,
        registry: PluginRegistry | None = None,
        metrics: CycleMetrics | None = None,
        pace: Pace = Pace(),  # noqa: B008 - a frozen value
    ) -> None:
        self.manager = manager or Manager(client, client.runtime)
        self.inventory = inventory or Inventory(config.scheduler_names)
        self.cycles = 0
        self._client = client
        self._runtime = client.runtime
        self._config = config
        self._pace = pace
        self._metrics = metrics or CycleMetrics()
        self._scheduler = Scheduler(config, self.inventory, runtime=self._runtime, registry=registry)
        events = self.manager.recorder(COMPONENT)
        self._binder = Binder(client, events)
        self._reporter = Reporter(client, self._runtime.clock, events, event_reason=UNSCHEDULABLE_EVENT)
        self._gang_conditions = GangConditions(self.inventory, self._reporter)
        self._woken = asyncio.Event()
        self._binding: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Watch, schedule and bind until :meth:`stop`."""
        self._follow(self.manager.cache(POD, Pod))
        self._follow(self.manager.cache(NODE, Node))
        available = await served(self._client, OPTIONAL_KINDS)
        for resource, kind in OPTIONAL_KINDS.items():
            if resource in available:
                self._follow(self.manager.cache(resource, kind))
        if POD_GANG in available:
            self._gang_conditions.register(self.manager, self.manager.cache(POD_GANG, PodGang))
        self.manager.add_runnable("scheduling cycles", self._cycle_for_ever)
        await self.manager.run()

    def stop(self) -> None:
        """Ask for a graceful stop."""
        self.manager.stop()

    # -- events ------------------------------------------------------------------------------------------------------

    def _follow(self, cache: WatchCache[Any]) -> None:
        cache.subscribe(self._take_in)

    def _take_in(self, change: Change[Any]) -> None:
        found: msgspec.Struct | None = change.new
        if found is not None:
            self.inventory.apply(found)
        elif change.old is not None:
            self.inventory.delete(change.old)
            if isinstance(change.old, Pod):
                self._reporter.forget(change.key)
        if may_change_decisions(change):
            self._woken.set()

    # -- cycles ------------------------------------------------------------------------------------------------------

    async def _cycle_for_ever(self) -> None:
        try:
            while True:
                await self._woken.wait()
                await self._runtime.clock.sleep(self._pace.gather)
                self._woken.clear()
                await self._cycle()
                await self._runtime.clock.sleep(self._pace.rest)
        finally:
            await asyncio.gather(*self._binding, return_exceptions=True)

    async def _cycle(self) -> None:
        started = self._runtime.clock.monotonic()
        result = await self._runtime.executor.run(self._scheduler.run_cycle, self.inventory.snapshot())
        self.cycles += 1
        self._metrics.cycle(result, self._runtime.clock.monotonic() - started)
        if result.binds or result.evictions:
            log.info(
                "cycle decided",
                binds=len(result.binds),
                evictions=len(result.evictions),
                unschedulable=len(result.unschedulable),
                seconds=round(self._runtime.clock.monotonic() - started, 4),
            )
        self._carry_out(result)
        await self._report(result.unschedulable)

    def _carry_out(self, result: CycleResult) -> None:
        for gang, binds in by_gang(result.binds).items():
            if assume_gang(self.inventory.cluster, binds) is None:
                self._in_background(self._bind(str(gang), binds), f"bind {gang}")
            else:
                self._metrics.outdated.inc()
                self._woken.set()
        if result.evictions:
            self._in_background(self._evict(result.evictions), "evict")

    def _in_background(self, work: Any, name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._binding.add(task)
        task.add_done_callback(self._binding.discard)

    async def _bind(self, gang: str, binds: Sequence[Bind]) -> None:
        placements = tuple(
            Placement(Key(*bind.pod), bind.uid, bind.node, annotations=bind.annotations) for bind in binds
        )
        outcome = await self._binder.bind(GangPlacement(gang, placements))
        self._metrics.binds.labels("bound").inc(len(outcome.bound))
        self._metrics.binds.labels("failed").inc(len(outcome.failed))
        for placement in outcome.bound:
            self._reporter.forget(placement.pod)
        for failure in outcome.failed:
            self.inventory.cluster.forget(PodKey(*failure.placement.pod))
            self._woken.set()

    async def _evict(self, evictions: Sequence[Eviction]) -> None:
        for eviction in evictions:
            try:
                await self._client.evict(eviction.pod.namespace, eviction.pod.name, uid=eviction.uid)
            except NotFound:
                continue
            except KubeError as error:
                log.warning("eviction refused", pod=str(eviction.pod), gang=str(eviction.gang), error=str(error))

    # -- telling people ----------------------------------------------------------------------------------------------

    async def _report(self, unschedulable: Sequence[Unschedulable]) -> None:
        for refused in unschedulable:
            found = self.inventory.gangs.members(refused.gang)
            if found is None:
                continue
            message, event = refused.message, refused.event
            await self._reporter.unschedulable(
                [
                    PodVerdict(Key(*record.key), record.uid, message, event)
                    for _, record in found.pods.values()
                    if record.status is PodStatus.PENDING
                ]
            )
        self._gang_conditions.refused({refused.gang: refused.message for refused in unschedulable})

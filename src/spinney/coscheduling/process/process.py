"""The coscheduler as a process: watches in, bindings, conditions and events out.

One ledger, one queue, one event loop. Scheduling cycles run in bursts of a few milliseconds between which watches,
binds and the lease get their turn; when nothing is ready, nothing runs.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from spinney.api import coscheduling
from spinney.api.core import PERSISTENT_VOLUME_CLAIM
from spinney.api.resource import Resource
from spinney.api.storage import PersistentVolumeClaim
from spinney.binding.asking import Asking
from spinney.binding.binder import Binder
from spinney.binding.device_claims import DeviceClaims
from spinney.binding.evicting import Disruption, Evictor, Victim
from spinney.binding.lost_work import lost_gpu_seconds
from spinney.binding.placement import pod_reference
from spinney.binding.volumes import LateVolumes
from spinney.cluster.pods import PodRecord
from spinney.cluster.state import PodChange
from spinney.coscheduling.cycle.metrics import CoschedulingMetrics
from spinney.coscheduling.cycle.scheduler import FLUSH_SECONDS, Coscheduler, UnplacedPod
from spinney.coscheduling.feasibility.nominations import Nominations
from spinney.coscheduling.framework import FrameworkRegistry, QueuedPod, Services, Status
from spinney.coscheduling.framework.status import FrameworkPluginFailed
from spinney.coscheduling.groups.book import Groups
from spinney.coscheduling.groups.group import Group
from spinney.coscheduling.groups.waiting import WaitingPod, WaitingPods
from spinney.coscheduling.plugins import BUILT_IN
from spinney.coscheduling.plugins.coscheduling import Coscheduling
from spinney.coscheduling.plugins.in_flight import why_kept
from spinney.coscheduling.plugins.scheduling_gates import SchedulingGates
from spinney.coscheduling.process.asked_victims import PREEMPT, AskedVictims
from spinney.coscheduling.process.composing import ComposedProfiles
from spinney.coscheduling.process.configuration import CoschedulerConfiguration
from spinney.coscheduling.process.disruption import GroupEvictions
from spinney.coscheduling.process.following import follow_cluster
from spinney.coscheduling.process.group_status import GroupConditions
from spinney.coscheduling.process.intake import CoschedulingIntake
from spinney.coscheduling.process.lasting import Lasting
from spinney.coscheduling.process.pod_group_controller import PodGroupController
from spinney.coscheduling.process.reading import COMPONENT, OPTIONAL_KINDS
from spinney.coscheduling.process.reporting import Reports
from spinney.gangs.eviction_requests import EvictionRequests
from spinney.gangs.intake import ClusterIntake
from spinney.gangs.sources import coscheduling as coscheduling_source
from spinney.gangs.tree import GangKey
from spinney.kube.cache import WatchCache
from spinney.kube.client import Client
from spinney.kube.discovery import served
from spinney.kube.keys import Key
from spinney.kube.manager import Manager
from spinney.kube.rounds import Rounds
from spinney.reporting.pods import FAILED_SCHEDULING, INADMISSIBLE, UNSCHEDULABLE, PodStatusWriter
from spinney.reporting.unreadable import UnreadableObjects
from spinney.runtime.tasks import BackgroundTasks

CYCLES: Final = "pod scheduling cycles"
PREEMPTING: Final = "Preempting"
_TOLD_ELSEWHERE: Final = frozenset({Coscheduling.name, SchedulingGates.name})
"""Plugins that keep pods out of the queue, or at Permit, and whose reasons are told by group, or by the API server."""
_MOST_PER_BURST: Final = 200
_STOOD_BY: Final = "the scheduler gave its lease away while the pod waited for permission to bind, and leads again"
_SHORTEST_REST: Final = 0.001
"""A loop runs timers that are due within its clock's resolution, so a shorter rest may be none at all."""


class CoschedulerProcess:
    """The coscheduler on a cluster. Mutable; runs until :meth:`stop`.

    What is known of the cluster may be ``shared`` with another scheduler of the process: both then see what the other
    has decided, and neither gives away what the other took. ``served`` are the kinds that the API server serves, where
    that was asked before.
    """

    def __init__(
        self,
        client: Client,
        configuration: CoschedulerConfiguration | None = None,
        *,
        manager: Manager | None = None,
        shared: ClusterIntake | None = None,
        registry: FrameworkRegistry | None = None,
        with_controller: bool = True,
        served: frozenset[Resource] | None = None,
    ) -> None:
        configuration = configuration or CoschedulerConfiguration()
        self.manager = manager or Manager(client, client.runtime)
        self.shared = shared if shared is not None else ClusterIntake()
        self.cluster = self.shared.cluster
        self.groups = Groups(self.shared.gangs)
        self._client = client
        self._runtime = client.runtime
        self._configuration = configuration
        self._served = served
        self._woken = asyncio.Event()
        self._events = events = self.manager.recorder(COMPONENT)
        self._pod_status = PodStatusWriter(client, events, event_reason=FAILED_SCHEDULING)
        self._unreadable = UnreadableObjects(
            self.manager.metrics, cluster=self.cluster, writer=self._pod_status, events=events
        )
        self._rounds = Rounds(self.manager, CYCLES)
        self._reports = Reports(self._pod_status, self.cluster)
        waiting = WaitingPods()
        leaving: dict[Key, None] = {}
        self._background = BackgroundTasks()
        self._conditions = GroupConditions(self.manager, self.groups, events, configuration.scheduler_names)
        self._disruption = GroupEvictions(
            client, events, waiting, leaving, self._background, ask=self._ask, reckon=self._preempted
        )
        self.services = Services(
            runtime=self._runtime,
            cluster=self.cluster,
            groups=self.groups,
            waiting=waiting,
            nominations=Nominations(),
            budgets=self.shared.budgets,
            binder=Binder(client, events),
            volumes=self.shared.surroundings.volumes,
            late_volumes=LateVolumes(client, self.cluster),
            claims=self.shared.claims,
            device_claims=DeviceClaims(client),
            activate=self._activate,
            preempt=self._preempt,
            nominate=self._nominate,
            reached_permit=self._conditions.began,
            bound=self._member_bound,
            refused=self._group_refused,
            background=self._background.begin,
            leaving=leaving,
            requests=EvictionRequests(lambda asked: asked.scheduler in configuration.scheduler_names),
            longest_min_runtime=timedelta(seconds=configuration.max_own_min_runtime_seconds),
            move=self._move,
            try_again_at=self._try_again_at,
        )
        self._try_again: datetime | None = None
        self._composed = ComposedProfiles.made(configuration, self.services, registry)
        self.queue = self._composed.queue(
            configuration,
            self.services,
            wake=self._woken.set,
            failed=self._could_not_ask,
            kept_out=self._watch_kept_out,
        )
        self._evictor = Evictor(client, events)
        self._metrics = CoschedulingMetrics(self.manager.metrics.registry)
        for profile in self._composed.profiles.values():
            profile.faults.count = lambda *where: self._metrics.plugin_failures.labels(*where).inc()
            profile.faults.count_slow = lambda *where: self._metrics.slow_answers.labels(*where).inc()
            profile.faults.monotonic = self._runtime.clock.monotonic
        self._metrics.watch(self.queue, lambda: len(waiting))
        self._asked = AskedVictims(
            self.services,
            Asking(client, events, self.services.requests, self._metrics.gangs, wake=self._woken.set),
            self._metrics.gangs,
            most=timedelta(seconds=configuration.max_checkpoint_grace_seconds),
            wake=self._woken.set,
        )
        self.scheduler = Coscheduler(
            self.services,
            self._composed.profiles,
            self._composed.rankings,
            self.queue,
            report=self._report,
            about_to_bind=self._pod_status.about_to_bind,
            metrics=self._metrics,
        )
        self._controller = PodGroupController(self.manager) if with_controller else None
        self._lasting = Lasting()

    def _could_not_ask(self, queued: QueuedPod, error: FrameworkPluginFailed) -> None:
        record = self.cluster.pod(queued.key)
        if record is not None:
            self._reports.put(UnplacedPod(record, Status.error(error)))

    # -- running -----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Watch, schedule and bind until :meth:`stop`."""
        await self.prepare()
        await self.manager.run()

    async def prepare(self) -> None:
        """Give the manager everything to run; for a process that has other things to run with the same manager."""
        intake = CoschedulingIntake(
            self.shared, self.services, self.queue, self._composed.rankings, gone=self._pod_status.forget
        )
        for listener in (self.groups.pod_changed, self._conditions.pod_changed, self._asked.pod_changed):
            self.cluster.subscribe(listener)
            for record in self.cluster.pods():
                listener(PodChange(None, record))
        self.groups.completed = self._completed
        self.groups.reordered = lambda group: self.queue.reorder(each.key for each in group.pending())
        self.groups.incomplete = self._watch_held
        self.services.waiting.began = self._watch_waiting
        self.scheduler.began_preparing = self._watch_preparing
        self.shared.gangs.subscribe(self.groups)
        found = self._served
        if found is None:
            found = await served(self._client, OPTIONAL_KINDS)
        follow_cluster(self.manager, found, intake, self._unreadable, group_kind=self._group_kind_followed)
        claims = self.manager.cache(PERSISTENT_VOLUME_CLAIM, PersistentVolumeClaim, optional=True)
        self.services.late_volumes.follow(claims)
        self.manager.add_runnable(CYCLES, self._schedule_for_ever)
        self.manager.add_runnable("safety flush", self._flush_for_ever)

    def stop(self) -> None:
        """Ask for a graceful stop."""
        self.manager.stop()

    def _group_kind_followed(self, cache: WatchCache[Any]) -> None:
        self._conditions.follow(cache)
        if cache.resource == coscheduling.POD_GROUP and self._controller is not None:
            self._controller.follow(cache)

    async def _schedule_for_ever(self) -> None:
        """Schedule for as long as this process leads, which may be more than once."""
        self.services.late_volumes.resume()
        for waiting in self.services.waiting:
            waiting.send_back(_STOOD_BY)
        try:
            while True:
                self._woken.clear()
                if not await self._rounds.attempt(self._burst_after_burst):
                    continue
                try:
                    async with asyncio.timeout(self._rest()):
                        await self._woken.wait()
                except TimeoutError:
                    continue
        finally:
            for waiting in self.services.waiting:
                waiting.abandon()
            self._lasting.clear()
            self.services.late_volumes.interrupt()
            await self.scheduler.finish_binding()
            await self._background.finish()
            await self._conditions.close()
            await self._pod_status.close()

    async def _burst_after_burst(self) -> None:
        """Run cycles until no pod is ready; between two bursts other tasks get a turn."""
        seconds = self._configuration.burst_milliseconds / 1000
        while self.scheduler.burst(seconds, _MOST_PER_BURST):  # noqa: ASYNC110 - nothing is waited for
            await asyncio.sleep(0)

    def _rest(self) -> float | None:
        """Return for how many seconds there is nothing to do, if nothing happens; ``None`` is for ever."""
        clock = self._runtime.clock
        if self._try_again is not None and clock.now() >= self._try_again:
            self._try_again = None
            self.queue.flush(0)
        self._disruption.carry_out()
        rests = [self._asked.settle(self._disruption.evict)]
        due = self.scheduler.next_due()
        if due is not None:
            rests.append(due - clock.monotonic())
        if self._try_again is not None:
            rests.append((self._try_again - clock.now()).total_seconds())
        known = [max(rest, _SHORTEST_REST) for rest in rests if rest is not None]
        return min(known, default=None)

    async def _flush_for_ever(self) -> None:
        while True:
            await self._runtime.clock.sleep(FLUSH_SECONDS / 10)
            self.queue.flush(FLUSH_SECONDS)

    # -- what plugins and groups ask for -----------------------------------------------------------------------------

    def _activate(self, keys: Iterable[Key]) -> None:
        self.queue.activate(keys)

    def _preempt(self, victims: Sequence[PodRecord], beneficiary: PodRecord, node: str) -> None:
        self._disruption.preempt(victims, beneficiary, node)
        group = self.groups.of(beneficiary.key)
        if group is not None:
            message = f"{len(victims)} pods of lower priority make room on node {node}"
            self._conditions.happened(group, PREEMPTING, message)
        self.scheduler.displace(beneficiary, node)

    def _ask(self, victims: Sequence[PodRecord], beneficiary: PodRecord) -> bool:
        if self._asked.ask(victims, beneficiary):
            self._report_kept(beneficiary)
            return True
        return False

    def _preempted(self, victim: PodRecord) -> Callable[[], None]:
        """Return how to count a pod that is going to be evicted for another, once it is."""
        loss = self._loss(victim)

        def count() -> None:
            self._metrics.preempted(1)
            loss()

        return count

    def _loss(self, victim: PodRecord, reason: str = PREEMPT) -> Callable[[], None]:
        """Return how to count what a pod loses that is going to be evicted."""
        services = self.services
        lost = lost_gpu_seconds(
            services.groups.gang_members(victim),
            [victim],
            now=self._runtime.clock.now(),
            asked=services.requests.of(victim.key),
        )
        return partial(self._metrics.gangs.lost, lost, reason=reason)

    def _move(self, rest: Sequence[PodRecord], lacking: PodRecord, why: str) -> None:
        for record in rest:
            self.services.leaving[record.key] = None
        self._background.begin(self._evict_whole(rest, lacking, why))

    async def _evict_whole(self, rest: Sequence[PodRecord], lacking: PodRecord, why: str) -> None:
        victims = tuple(Victim(record.key, record.uid, why) for record in rest)
        about = pod_reference(lacking.key, lacking.uid)
        losses = {record.uid: self._loss(record, "relocation") for record in rest}
        gone = await self._evictor.evict(Disruption(str(lacking.key), victims, about))
        self._metrics.relocated(len(gone))
        for victim in gone:
            losses[victim.uid]()
        for record in rest:
            if record.uid not in {victim.uid for victim in gone}:
                self.services.leaving.pop(record.key, None)

    def _try_again_at(self, moment: datetime) -> None:
        self._try_again = moment if self._try_again is None else min(moment, self._try_again)

    def _nominate(self, record: PodRecord, node: str) -> None:
        if self.scheduler.nominate(record, node):
            self._woken.set()
            self._pod_status.nominate(record.key, record.uid, node)

    def _completed(self, group: Group) -> None:
        self.queue.activate(record.key for record in group.pending())
        self._woken.set()

    def _member_bound(self, group: Group) -> None:
        self._conditions.bound(group)
        if self._controller is not None and group.key.source == coscheduling_source.SOURCE:
            self._controller.enqueue(Key(group.key.namespace, group.key.name))

    def _report(self, refused: UnplacedPod) -> None:
        if refused.status.rejected and self._report_kept(refused.record):
            return
        group = self.groups.of(refused.record.key)
        waiting = group.pending() if group is not None and group.complete and not group.satisfied else ()
        self._reports.put(refused, [each for each in waiting if each.key != refused.record.key])

    def _report_kept(self, record: PodRecord) -> bool:
        """Say on a pod and those of its gang that wait until when victims checkpoint; tell whether any do."""
        group = self.groups.of(record.key)
        waiting = group.pending() if group is not None else [record]
        why = why_kept(self.services, waiting, otherwise="")
        for each in waiting if why else ():
            self._reports.kept(each, why)
        return bool(why)

    def _group_refused(self, group: Group, reason: str) -> None:
        self._woken.set()
        self._metrics.groups_rejected.inc()
        self._conditions.refused(group, reason)

    # -- pods and groups that cannot be tried ------------------------------------------------------------------------

    def _watch_kept_out(self, queued: QueuedPod, refused: Status) -> None:
        """Have a pod that a plugin keeps out of the queue say so, if that lasts; gates and groups speak elsewhere."""
        if refused.plugin not in _TOLD_ELSEWHERE:
            self._lasting.watch(self._report_kept_out, queued.key)

    def _report_kept_out(self, key: Key) -> None:
        record = self.cluster.pod(key)
        if record is None or record.node:
            return
        with suppress(FrameworkPluginFailed):  # that is said when the queue asks
            refused = self.queue.refusal(record.pod)
            if refused is not None and refused.plugin not in _TOLD_ELSEWHERE:
                waits = INADMISSIBLE if refused.waits == UNSCHEDULABLE else refused.waits  # no node would help
                said = f"plugin {refused.plugin} keeps it out of the queue: {refused.message or 'it does not say why'}"
                self._reports.held(record, replace(refused, reasons=(said,), waits=waits))

    def _watch_waiting(self, waiting: WaitingPod) -> None:
        """Have a pod that waits for permission to bind say so, if that lasts; groups speak elsewhere."""
        if not _TOLD_ELSEWHERE.issuperset(waiting.awaited):
            self._lasting.watch(self._report_waiting, waiting.key)

    def _report_waiting(self, key: Key) -> None:
        waiting, record = self.services.waiting.get(key), self.cluster.pod(key)
        awaited = sorted({*waiting.awaited} - _TOLD_ELSEWHERE) if waiting is not None else []
        if waiting is None or record is None or not awaited:
            return
        said = f"it waits for {', '.join(f'plugin {each}' for each in awaited)} to let it be bound to {waiting.node}"
        self._reports.held(record, Status.unresolvable(said, waits=INADMISSIBLE))

    def _watch_preparing(self, key: Key, plugin: str) -> None:
        """Have a pod that a plugin prepares for its bind say so, if that lasts; built-in ones have limits."""
        if plugin not in BUILT_IN:
            self._lasting.watch(self._report_preparing, key)

    def _report_preparing(self, key: Key) -> None:
        plugin, record = self.scheduler.preparing.get(key), self.cluster.pod(key)
        if record is not None and record.node and plugin is not None and plugin not in BUILT_IN:
            said = f"it waits for plugin {plugin} to prepare it at preBind, before it is bound to {record.node}"
            self._reports.held(record, Status.unresolvable(said, waits=INADMISSIBLE))

    def _watch_held(self, group: Group) -> None:
        """Have the members of a group that stays incomplete say so."""
        self._lasting.watch(self._report_held, group.key)

    def _report_held(self, key: GangKey) -> None:
        group = self.groups.get(key)
        if group is None or group.complete:
            return
        for record in group.pending():
            with suppress(FrameworkPluginFailed):  # that is said when the queue asks
                refused = self.queue.refusal(record.pod)
                if refused is not None:
                    self._reports.held(record, refused)
                    self._conditions.refused(group, refused.message)

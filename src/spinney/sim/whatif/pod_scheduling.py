"""The coscheduler over a simulated cluster: for pods that neither Spinney's session scheduler nor KAI places.

The production scheduler runs with its queue, its plugins and its groups; only its effects stay in memory. A pod that
would be bound runs on its node at once, and a victim is gone at once. A run takes as long on virtual time as pods rest
and groups wait at Permit, so it ends with nobody holding a node for nothing.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from prometheus_client import CollectorRegistry

from spinney.api.core import Pod
from spinney.cluster.pods import PodKey, PodRecord
from spinney.cluster.state import PodChange
from spinney.cluster.statuses import PodStatus
from spinney.coscheduling.cycle.metrics import CoschedulingMetrics
from spinney.coscheduling.cycle.scheduler import Coscheduler, UnplacedPod
from spinney.coscheduling.feasibility.nominations import Nominations
from spinney.coscheduling.framework import SUCCESS, FrameworkRegistry, QueuedPod, Services, Status
from spinney.coscheduling.framework.points import Bind, CycleState
from spinney.coscheduling.framework.status import FrameworkPluginFailed
from spinney.coscheduling.groups.book import Groups
from spinney.coscheduling.groups.waiting import WaitingPods
from spinney.coscheduling.plugins import BUILT_IN
from spinney.coscheduling.process.composing import ComposedProfiles
from spinney.coscheduling.process.configuration import (
    CoschedulerConfiguration,
    PluginChoice,
    PluginSet,
    ProfileConfiguration,
)
from spinney.coscheduling.process.intake import CoschedulingIntake
from spinney.gangs.checkpoints import grace_within
from spinney.gangs.intake import ClusterIntake
from spinney.kube.cache import Change
from spinney.kube.keys import Key, key_of
from spinney.runtime import Runtime, VirtualClock, run_virtual_within
from spinney.sim.whatif.outcomes import Waiting
from spinney.sim.whatif.pod_refusals import Refusals
from spinney.sim.whatif.running import running_on

_IN_MEMORY: Final = "InMemory"
_LONGEST_SECONDS: Final = 300.0
"""Virtual time after which a run ends, though pods still rest: longer than any wait at Permit with its back-offs."""
_BURST: Final = 1000


@dataclass(frozen=True)
class Preempted:
    """A victim, and for whose sake it went."""

    victim: PodRecord
    beneficiary: PodRecord
    grace: timedelta
    """How long the victim would be given to checkpoint first."""


@dataclass(frozen=True)
class PodsScheduled:
    """What one run decided: nodes by pod, victims, and who is left."""

    placed: dict[PodKey, str]
    preempted: list[Preempted]
    refused: list[Waiting]


def schedule_pods(shared: ClusterIntake, serves: Callable[[PodRecord], bool], *, now: datetime) -> PodsScheduled:
    """Place the pending pods that ``serves`` names on the cluster as it is ``now``, which changes accordingly."""
    pending = [record for record in shared.cluster.pods() if record.status is PodStatus.PENDING and serves(record)]
    if not pending:
        return PodsScheduled({}, [], [])
    return run_virtual_within(lambda: _Run(shared, pending, now).run())


class _Run:
    """One run over the pending pods. Mutable."""

    def __init__(
        self,
        shared: ClusterIntake,
        pending: Sequence[PodRecord],
        now: datetime,
    ) -> None:
        self._shared = shared
        self._cluster = shared.cluster
        self._pending = pending
        self._now = now
        self._placed: dict[PodKey, str] = {}
        self._preempted: list[Preempted] = []
        self._groups = Groups(shared.gangs)
        in_memory: Any = _NothingToWrite()
        configuration = _configuration({record.pod.spec.scheduler_name for record in pending})
        self._most = timedelta(seconds=configuration.max_checkpoint_grace_seconds)
        self._services = Services(
            runtime=replace(Runtime.virtual(), clock=VirtualClock(now)),
            cluster=shared.cluster,
            groups=self._groups,
            waiting=WaitingPods(),
            nominations=Nominations(),
            budgets=shared.budgets,
            binder=in_memory,
            volumes=shared.surroundings.volumes,
            late_volumes=in_memory,
            claims=shared.claims,
            device_claims=in_memory,
            activate=self._activate,
            preempt=self._preempt,
            nominate=self._nominate,
            reached_permit=lambda group: None,
            bound=lambda group: None,
            refused=lambda group, reason: None,
            background=lambda work: work.close(),  # what was written is to be taken back, and nothing was
            longest_min_runtime=timedelta(seconds=configuration.max_own_min_runtime_seconds),
        )
        registry = FrameworkRegistry(BUILT_IN)
        registry.register(_IN_MEMORY, lambda handle, arguments: _Binder(self._bind))
        self._composed = ComposedProfiles.made(configuration, self._services, registry)
        for profile in self._composed.profiles.values():
            profile.faults.monotonic = self._services.runtime.clock.monotonic  # nobody waits for a slow plugin here
        self._queue = self._composed.queue(configuration, self._services, wake=lambda: None, failed=self._could_not_ask)
        self._refusals = Refusals(shared, self._groups, self._composed.rankings)
        self._scheduler = Coscheduler(
            self._services,
            self._composed.profiles,
            self._composed.rankings,
            self._queue,
            report=self._refusals.note,
            about_to_bind=lambda key: None,
            metrics=CoschedulingMetrics(CollectorRegistry()),
        )
        self._intake = CoschedulingIntake(
            shared, self._services, self._queue, self._composed.rankings, gone=lambda key: None
        )

    async def run(self) -> PodsScheduled:
        """Schedule until nobody who waits could be helped by anything that is still to come."""
        for record in self._cluster.pods():
            self._groups.pod_changed(PodChange(None, record))
        self._groups.completed = lambda group: self._queue.activate(Key(*each.key) for each in group.pending())
        self._groups.reordered = lambda group: self._queue.reorder(Key(*each.key) for each in group.pending())
        endings = [
            self._cluster.subscribe(self._groups.pod_changed),
            self._cluster.subscribe(self._refusals.pod_changed),
            self._shared.gangs.subscribe(self._groups),
        ]
        try:
            for record in self._pending:
                self._intake.pod(Change(Key(*record.key), None, record.pod, ""))
            await self._until_settled()
        finally:
            for end in endings:
                end()
        return PodsScheduled(self._placed, self._preempted, self._refusals.of(self._pending, self._placed))

    async def _until_settled(self) -> None:
        clock = self._services.runtime.clock
        ends = clock.monotonic() + _LONGEST_SECONDS
        while clock.monotonic() < ends:
            while self._scheduler.burst(_LONGEST_SECONDS, _BURST):  # noqa: ASYNC110 - nothing is waited for
                await asyncio.sleep(0)
            await self._scheduler.finish_binding()
            await asyncio.sleep(0)  # room that became free is told of after the cycle
            if self._queue.counts["active"]:
                continue
            due = self._scheduler.next_due()
            if due is None and not len(self._services.waiting):
                return
            await clock.sleep(max(due - clock.monotonic(), 0.001) if due is not None else 1.0)
        for waiting in self._services.waiting:
            waiting.reject("Coscheduling", "the simulation ended")

    # -- effects -------------------------------------------------------------------------------------------------------

    def _bind(self, pod: Pod, node: str) -> None:
        self._placed[PodKey(*key_of(pod))] = node
        self._intake.pod(Change(key_of(pod), pod, running_on(pod, node, self._now), ""))

    def _preempt(self, victims: Sequence[PodRecord], beneficiary: PodRecord, node: str) -> None:
        for victim in victims:
            waiting = self._services.waiting.get(Key(*victim.key))
            if waiting is not None:
                waiting.reject("DefaultPreemption", f"preempted by {beneficiary.key} of higher priority")
                continue
            self._services.leaving[victim.key] = None
            self._placed.pop(victim.key, None)
            grace = grace_within(self._groups.gang_members(victim), self._most)
            self._preempted.append(Preempted(victim, beneficiary, grace))
            change = Change(Key(*victim.key), victim.pod, None, "")
            asyncio.get_running_loop().call_soon(self._intake.pod, change)
        self._scheduler.displace(beneficiary, node)

    def _activate(self, keys: Iterable[Key]) -> None:
        self._queue.activate(keys)

    def _nominate(self, record: PodRecord, node: str) -> None:
        self._scheduler.nominate(record, node)

    def _could_not_ask(self, queued: QueuedPod, error: FrameworkPluginFailed) -> None:
        record = self._cluster.pod(PodKey(*queued.key))
        if record is not None:
            self._refusals.note(UnplacedPod(record, Status.error(error)))


class _Binder(Bind):
    """Binds in memory."""

    name = _IN_MEMORY

    def __init__(self, bind: Callable[[Pod, str], None]) -> None:
        self._bind = bind

    async def bind(self, state: CycleState, pod: Pod, node: str) -> Status:
        self._bind(pod, node)
        return SUCCESS


class _NothingToWrite:
    """Stands for what writes to an API server: no claim waits for a volume, and nothing was written."""

    def needs(self, _placement: object) -> bool:
        return False

    async def release(self, _placement: object) -> None:
        """Take nothing back."""


def _configuration(names: Iterable[str]) -> CoschedulerConfiguration:
    """Return kube-scheduler's profile, with coscheduling, for each name; bound in memory, prepared by nobody."""
    plugins = {
        "bind": PluginSet(enabled=(PluginChoice(name=_IN_MEMORY),)),
        "preBind": PluginSet(disabled=(PluginChoice(name="*"),)),
    }
    profiles = tuple(ProfileConfiguration(scheduler_name=name, plugins=plugins) for name in sorted(names))
    return CoschedulerConfiguration(profiles=profiles)

"""Admission of suspended workloads: they wait in queues without pods, and are resumed when their gang would start.

Of each queue the first workloads are *virtual gangs* in the scheduler's inventory: the pods that their templates would
make, grouped as the grouper would. The scheduler decides about them as about everything else, with quotas, priorities,
topology and victims. One that is given nodes is resumed (``spec.suspend: false``), and the nodes are kept until its
real pods are there, which then take part in the next cycle. The others stay light entries of a :class:`Backlog`.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import msgspec
import structlog

from spinney.api.core import Pod
from spinney.api.labels import POD_GANG
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.explain.amounts import counted
from spinney.gangs.tree import GangKey
from spinney.grouping.made_workloads import RUNTIMES
from spinney.grouping.owners import Owner
from spinney.grouping.terms import RuleRefused
from spinney.kube.cache import Change
from spinney.kube.discovery import find_kind
from spinney.kube.errors import KubeError
from spinney.kube.event_series import EventType
from spinney.kube.events import reference
from spinney.kube.keys import Key, key_of
from spinney.kube.manager import Manager
from spinney.queueing.backlog import Backlog, WorkloadKey
from spinney.queueing.metrics import QueueingMetrics
from spinney.queueing.suspended import GROUPS, SELECTOR, SuspendedWorkload
from spinney.queueing.virtual_gang import VirtualGang, virtual_gang, without_uid
from spinney.scheduler.config import SchedulerConfig, SuspendedWorkloads
from spinney.scheduler.framework.results import Binding, Unschedulable
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.process.virtual_gangs import VirtualGangs

log = structlog.get_logger()
T = TypeVar("T")

COMPONENT: Final = "spinney-queueing"
ADMITTED: Final = "Admitted"
WAITING: Final = "WaitingInQueue"
NOT_QUEUEABLE: Final = "NotQueueable"
SUSPENDED_AGAIN: Final = "SuspendedAgain"
_AGAIN_SECONDS: Final = 5.0
"""After which a workload that could not be resumed is tried again."""
_AT_ONCE: Final = 1000
"""How many pods are made up at once."""
_LOOK_AGAIN_SECONDS: Final = 60.0
"""Between looks for kinds that are not served."""


@dataclass(frozen=True)
class _Queued:
    """A workload with a virtual gang."""

    key: WorkloadKey
    resource: Resource
    workload: SuspendedWorkload
    virtual: VirtualGang
    resumed: bool = False
    """Whether it has nodes, and was resumed or is about to be."""


def admission_for(manager: Manager, inventory: Inventory, config: SchedulerConfig) -> "SuspendedAdmission | None":
    """Return what admits suspended workloads, run by ``manager``; ``None`` where the configuration names no kinds."""
    if not config.suspended_workloads.kinds:
        return None
    admission = SuspendedAdmission(manager, inventory, config.suspended_workloads)
    manager.add_runnable("suspended workloads", admission.run)
    return admission


class SuspendedAdmission(VirtualGangs):
    """Keeps virtual gangs for suspended workloads, and resumes them. Mutable."""

    def __init__(self, manager: Manager, inventory: Inventory, settings: SuspendedWorkloads) -> None:
        self._manager = manager
        self._client = manager.client
        self._inventory = inventory
        self._settings = settings
        self._events = manager.recorder(COMPONENT)
        self._backlog = Backlog()
        self._found: dict[WorkloadKey, tuple[Resource, SuspendedWorkload]] = {}
        self._runtimes: dict[tuple[str, Key], JSON] = {}
        self._queued: dict[WorkloadKey, _Queued] = {}
        self._by_gang: dict[GangKey, WorkloadKey] = {}
        self._expected: dict[tuple[str, str], tuple[GangKey, set[Key]]] = {}
        """The pods that have come of workloads that were resumed, by namespace and name of their gang."""
        self._told: dict[WorkloadKey, str] = {}
        self._due = False
        self.wake: Callable[[], None] = lambda: None
        self._metrics = QueueingMetrics(manager.metrics.registry)

    # -- watching ------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Follow the kinds, as they are served, until cancelled; then another replica does, and nothing is kept."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for kind in self._settings.kinds:
                    following = self._follow(GROUPS[kind], kind, SuspendedWorkload, self._workload_changed, SELECTOR)
                    tasks.create_task(following)
                if "TrainJob" in self._settings.kinds:
                    for runtimes in RUNTIMES:
                        following = self._follow(GROUPS["TrainJob"], runtimes, Owner, self._runtime_changed)
                        tasks.create_task(following)
        finally:
            for key in list(self._found):
                self._forget(key)
            for queued in list(self._queued.values()):
                self._drop(queued)

    async def _follow(
        self,
        group: str,
        kind: str,
        read_as: type[T],
        changed: Callable[[Resource, Change[T]], None],
        selector: str | None = None,
    ) -> None:
        resource = await self._served(group, kind)
        cache = self._manager.watch(resource, read_as, selector)
        cache.subscribe(lambda change: changed(resource, change))
        await cache.run()

    async def _served(self, group: str, kind: str) -> Resource:
        """Return how a kind is served, as soon as it is."""
        while True:
            try:
                found = await find_kind(self._client, group, kind)
            except KubeError as error:
                log.warning("kind not looked up", kind=kind, error=str(error))
                found = None
            if found is not None:
                return found
            await self._manager.runtime.clock.sleep(_LOOK_AGAIN_SECONDS)

    def _runtime_changed(self, resource: Resource, change: Change[Owner]) -> None:
        kind = resource.kind
        if change.new is None:
            self._runtimes.pop((kind, change.key), None)
        else:
            metadata = {"name": change.key.name, "namespace": change.key.namespace}
            self._runtimes[kind, change.key] = {"kind": kind, "metadata": metadata, "spec": change.new.spec}
        if change.old is not None and change.new is not None and change.old.spec == change.new.spec:
            return
        for key, (_, workload) in self._found.items():
            if key.kind == "TrainJob":  # one that was refused may be described now
                self._let_wait(key, workload)
                queued = self._queued.get(key)
                if queued is not None and not queued.resumed:
                    self._drop(queued)
        self._refresh_soon()

    def _workload_changed(self, resource: Resource, change: Change[SuspendedWorkload]) -> None:
        key = WorkloadKey(resource.kind, change.key.namespace or "", change.key.name)
        found = change.new
        queued = self._queued.get(key)
        try:
            waits = found is not None and found.waits
        except msgspec.ValidationError as error:  # a CRD may have no schema
            log.warning("suspended workload cannot be read", workload=str(key), error=str(error))
            waits = False
        if found is None or not waits:
            self._forget(key)
            if queued is not None and (found is None or not queued.resumed):
                self._drop(queued)
        else:
            self._found[key] = (resource, found)
            self._let_wait(key, found)
            if queued is not None and not queued.resumed and _differs(queued.workload, found):
                self._drop(queued)
        self._refresh_soon()

    def _let_wait(self, key: WorkloadKey, workload: SuspendedWorkload) -> None:
        self._backlog.put(key, workload.place(self._inventory.shared.gangs.context))

    def _forget(self, key: WorkloadKey) -> None:
        self._backlog.remove(key)
        for book in (self._found, self._told):
            book.pop(key, None)

    # -- virtual gangs -------------------------------------------------------------------------------------------------

    def _refresh_soon(self) -> None:
        """Have the first of each queue looked at; what comes together is looked at together."""
        if not self._due:
            self._due = True
            asyncio.get_running_loop().call_soon(self._refresh)

    def _refresh(self) -> None:
        self._due = False
        wanted = dict.fromkeys(self._backlog.first(self._settings.per_queue))
        for queued in [each for key, each in self._queued.items() if key not in wanted and not each.resumed]:
            self._drop(queued)
        made = 0
        for key in (each for each in wanted if each not in self._queued):
            made += self._put_in(key)
            if made >= _AT_ONCE:
                self._refresh_soon()  # the rest when others had their turn: a lease is renewed meanwhile
                break
        self._metrics.wait(self._backlog.lengths())
        self.wake()

    def _put_in(self, key: WorkloadKey) -> int:
        """Make up the gang of a workload; returns how many pods it has.

        One that cannot wait in a queue leaves it until it is changed, so that it takes nobody's turn.
        """
        resource, workload = self._found[key]
        context = self._inventory.shared.gangs.context
        try:
            virtual = virtual_gang(
                workload.manifest(resource),
                self._runtimes.values(),
                names=self._inventory.scheduler_names,
                priorities=context.priorities,
                born=workload.metadata.creation_timestamp or self._manager.runtime.clock.now(),
            )
        except RuleRefused as error:
            self._refuse(key, str(error))
            return 0
        queued = self._queued[key] = _Queued(key, resource, workload, virtual)
        self._by_gang[virtual.key] = key
        try:
            self._inventory.apply(virtual.gang)
            for pod in virtual.pods:
                self._inventory.apply(pod)
        except Exception as error:  # what a real pod would be told by the scheduler (spinney.reporting.unreadable)
            log.exception("pods of a workload not taken in", workload=str(key))
            self._drop(queued)
            self._refuse(key, f"the scheduler could not read its pods: {type(error).__name__}: {error}")
            return 0
        return len(virtual.pods)

    def _refuse(self, key: WorkloadKey, why: str) -> None:
        """Have a workload wait no longer, so that it takes nobody's turn, and say why."""
        self._backlog.remove(key)
        self._refresh_soon()
        self._tell(key, "Warning", NOT_QUEUEABLE, f"it stays suspended: {why}")

    def _drop(self, queued: _Queued) -> None:
        """Take a virtual gang out, with what it holds."""
        self._queued.pop(queued.key, None)
        self._by_gang.pop(queued.virtual.key, None)
        self._expected.pop(queued.virtual.expected, None)
        for pod in queued.virtual.pods:
            self._inventory.delete(pod)
        self._inventory.delete(queued.virtual.gang)
        self.wake()

    # -- what the scheduler decides ------------------------------------------------------------------------------------

    def has(self, gang: GangKey) -> bool:
        """Tell whether a gang is a virtual one."""
        return gang in self._by_gang

    async def start(self, gang: GangKey, binds: Sequence[Binding]) -> None:
        """Resume a workload that has nodes; they are kept until its pods have come, or for a while."""
        queued = self._of(gang)
        if queued is None or queued.resumed:
            return
        queued = self._queued[queued.key] = replace(queued, resumed=True)
        self._expected[queued.virtual.expected] = (gang, set())
        try:
            await self._suspend(queued, value=False)
        except KubeError as error:
            log.warning("workload not resumed", workload=str(queued.key), error=str(error))
            self._drop(queued)
            asyncio.get_running_loop().call_later(_AGAIN_SECONDS, self._refresh_soon)
            return
        self._metrics.resumed.inc()
        pods, nodes = counted(len(queued.virtual.pods), "pod"), counted(len({bind.node for bind in binds}), "node")
        text = f"its gang of {pods} has room on {nodes}; it is suspended no longer"
        self._events.event(reference(queued.resource, queued.workload), "Normal", ADMITTED, text)
        loop = asyncio.get_running_loop()
        loop.call_later(self._settings.hold_seconds, self._give_back, gang, queued.virtual)

    async def stop(self, gang: GangKey) -> None:
        """Suspend a workload again whose nodes are needed by others before its pods have come."""
        queued = self._of(gang)
        if queued is None:
            return
        self._drop(queued)
        try:
            await self._suspend(queued, value=True)
        except KubeError as error:
            log.warning("workload not suspended again", workload=str(queued.key), error=str(error))
            return
        text = "others need the nodes that were kept for it more; it waits in its queue again"
        self._events.event(reference(queued.resource, queued.workload), "Warning", SUSPENDED_AGAIN, text)

    def pod_coming(self, pod: Pod) -> None:
        """Count the pods of workloads that were resumed."""
        if not self._expected:
            return
        place = (pod.metadata.namespace or "", without_uid(pod.metadata.labels.get(POD_GANG, "")))
        if place in self._expected and not pod.spec.scheduling_gates:
            self._expected[place][1].add(key_of(pod))

    def before_cycle(self) -> None:
        """Give back the nodes of workloads whose pods have all come, once their gang is known.

        Pods may name their gang before its object is there, and until then nodes given back would go to others.
        """
        for gang, come in list(self._expected.values()):
            queued = self._of(gang)
            if queued is not None and len(come) >= len(queued.virtual.pods) and self._is_known(come):
                self._drop(queued)

    def _is_known(self, pods: Iterable[Key]) -> bool:
        """Tell whether the gang that pods name is one that a cycle would place."""
        gangs = self._inventory.gangs
        records = (self._inventory.cluster.pod(key) for key in pods)
        record = next((each for each in records if each is not None), None)
        return record is not None and gangs.members(gangs.membership(record)[0]) is not None

    def refused(self, gangs: Sequence[Unschedulable]) -> None:
        """Say on workloads why they wait, when that is news."""
        for refused in gangs:
            key = self._by_gang.get(refused.gang)
            if key is not None:
                self._tell(key, "Normal", WAITING, refused.event)

    def _give_back(self, gang: GangKey, virtual: VirtualGang) -> None:
        """Keep nodes no longer for a workload whose pods have not come."""
        queued = self._of(gang)
        if queued is not None and queued.virtual is virtual:
            log.warning("pods of a resumed workload have not come in time", workload=str(queued.key))
            self._drop(queued)
            self._refresh_soon()

    def _of(self, gang: GangKey) -> _Queued | None:
        key = self._by_gang.get(gang)
        return self._queued.get(key) if key is not None else None

    def _tell(self, key: WorkloadKey, kind: EventType, reason: str, message: str) -> None:
        if self._told.get(key) != message and key in self._found:
            self._told[key] = message
            resource, workload = self._found[key]
            self._events.event(reference(resource, workload), kind, reason, message)

    async def _suspend(self, queued: _Queued, *, value: bool) -> None:
        patch = {"metadata": {"uid": queued.workload.metadata.uid}, "spec": {"suspend": value}}
        await self._client.patch(queued.resource, queued.key.name, patch, queued.key.namespace)


def _differs(before: SuspendedWorkload, after: SuspendedWorkload) -> bool:
    """Tell whether something changed that may change the gang."""
    was, now = (
        (each.metadata.uid, each.metadata.labels, each.metadata.annotations, bytes(each.spec))
        for each in (before, after)
    )
    return was != now

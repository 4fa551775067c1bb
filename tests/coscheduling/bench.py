"""A scheduler without an API server: pods and nodes are put into its ledger, binds are written down."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry

from spinney.api.affinity import Affinity, Taint, TopologySpreadConstraint
from spinney.api.core import (
    Container,
    Node,
    NodeSpec,
    NodeStatus,
    Pod,
    PodSchedulingGate,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)
from spinney.api.coscheduling import PodGroup, PodGroupSpec
from spinney.api.labels import COSCHEDULING_GROUP
from spinney.api.meta import Metadata, ObjectMeta
from spinney.binding.binder import Binder
from spinney.binding.device_claims import DeviceClaims
from spinney.binding.volumes import LateVolumes
from spinney.cluster.pods import PodKey, PodRecord
from spinney.cluster.state import ClusterState
from spinney.coscheduling.cycle.metrics import CoschedulingMetrics
from spinney.coscheduling.cycle.queue import SchedulingQueue
from spinney.coscheduling.cycle.scheduler import Coscheduler, UnplacedPod
from spinney.coscheduling.feasibility.nominations import Nominations
from spinney.coscheduling.feasibility.ranking import NodeRanking
from spinney.coscheduling.framework import SUCCESS, Bind, CycleState, FrameworkRegistry, Handle, Services, Status
from spinney.coscheduling.groups.book import Groups
from spinney.coscheduling.groups.group import Group
from spinney.coscheduling.groups.waiting import WaitingPods
from spinney.coscheduling.plugins import BUILT_IN, DEFAULT_PLUGINS
from spinney.coscheduling.plugins.coscheduling import Coscheduling
from spinney.coscheduling.process.configuration import CoschedulerConfiguration, make_profile, parse_configuration
from spinney.coscheduling.process.intake import CoschedulingIntake
from spinney.gangs.intake import ClusterIntake
from spinney.kube.cache import Change
from spinney.kube.client import Client
from spinney.kube.events import EventRecorder
from spinney.kube.keys import Key, key_of
from spinney.runtime import Runtime
from spinney.runtime.tasks import BackgroundTasks
from spinney.server import ApiServer
from spinney.sim.embedded.transport import InProcessTransport

NAMESPACE = "ns"
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
SCHEDULER = "coscheduling"


class WrittenDown(Bind):
    """Binds by writing down; refuses the pods it was told to."""

    name = "WrittenDown"

    def __init__(self, bench: "Bench") -> None:
        self._bench = bench

    async def bind(self, state: CycleState, pod: Pod, node: str) -> Status:
        if pod.metadata.name in self._bench.refuse_binds:
            return Status.error(RuntimeError("no"))
        self._bench.binds[pod.metadata.name] = node
        bound = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))
        asyncio.get_running_loop().call_soon(self._bench.put, bound)  # as the watch would show it
        return SUCCESS


class Bench:
    """One scheduler, driven by hand. Mutable."""

    def __init__(
        self,
        *,
        plugins: Mapping[str, Any] | None = None,
        registry: FrameworkRegistry | None = None,
        plugin_config: Sequence[Mapping[str, Any]] = (),
        **arguments: object,
    ) -> None:
        self.runtime = Runtime.virtual()
        self.registry = CollectorRegistry()
        self.binds: dict[str, str] = {}
        self.refuse_binds: set[str] = set()
        self.refused: dict[str, UnplacedPod] = {}
        self.rejected: list[tuple[str, str]] = []
        self.preempted: list[tuple[str, str]] = []
        self.nominated: dict[str, str] = {}
        self.started: list[str] = []
        self.counted: list[str] = []
        self._background = BackgroundTasks()
        client = Client(InProcessTransport(ApiServer(self.runtime)), self.runtime)
        self.shared = ClusterIntake()
        cluster = self.shared.cluster
        self.services = Services(
            runtime=self.runtime,
            cluster=cluster,
            groups=Groups(self.shared.gangs),
            waiting=WaitingPods(),
            nominations=Nominations(),
            budgets=self.shared.budgets,
            binder=Binder(client, EventRecorder(client, "bench")),
            volumes=self.shared.surroundings.volumes,
            late_volumes=LateVolumes(client, cluster),
            claims=self.shared.claims,
            device_claims=DeviceClaims(client),
            activate=self._activate,
            preempt=self._preempt,
            nominate=self._nominate,
            reached_permit=lambda group: self.started.append(group.key.name),
            bound=lambda group: self.counted.append(group.key.name),
            refused=lambda group, reason: self.rejected.append((group.key.name, reason)),
            background=self._background.begin,
        )
        registry = registry or FrameworkRegistry(BUILT_IN)
        registry.register("WrittenDown", lambda handle, arguments: WrittenDown(self))
        raw = {
            "schedulerName": SCHEDULER,
            "plugins": {"bind": {"enabled": [{"name": "WrittenDown"}]}, **(plugins or {})},
            "pluginConfig": [*plugin_config, *([{"name": "Coscheduling", "args": arguments}] if arguments else [])],
        }
        configuration: CoschedulerConfiguration = parse_configuration({"profiles": [raw]})
        handle = Handle(self.services, SCHEDULER)
        self.profile = make_profile(configuration.profiles[0], DEFAULT_PLUGINS, registry, handle)
        self.profile.faults.monotonic = self.runtime.clock.monotonic
        self.ranking = NodeRanking(self.profile, self.services.cluster, self.services.claims, self.services.nominations)
        handle.complete(self.ranking)
        self.queue = SchedulingQueue(
            self.runtime.clock,
            self.profile.queue_sort,
            pre_enqueue=lambda _: self.profile.pre_enqueue,
            hints=self.profile.hints(),
        )
        self.scheduler = Coscheduler(
            self.services,
            {SCHEDULER: self.profile},
            {SCHEDULER: self.ranking},
            self.queue,
            report=lambda refused: self.refused.__setitem__(refused.record.name, refused),
            about_to_bind=lambda key: None,
            metrics=CoschedulingMetrics(self.registry),
        )
        self.intake = CoschedulingIntake(
            self.shared, self.services, self.queue, {SCHEDULER: self.ranking}, gone=lambda key: None
        )
        self.cluster.subscribe(self.groups.pod_changed)
        self.groups.completed = lambda group: self._activate(Key(*record.key) for record in group.pending())
        self.shared.gangs.subscribe(self.groups)
        self.groups.reordered = lambda group: self.queue.reorder(Key(*record.key) for record in group.pending())

    # -- parts -------------------------------------------------------------------------------------------------------

    @property
    def cluster(self) -> ClusterState:
        return self.services.cluster

    @property
    def groups(self) -> Groups:
        return self.services.groups

    @property
    def plugin(self) -> Coscheduling:
        plugin = self.profile.queue_sort
        assert isinstance(plugin, Coscheduling)
        return plugin

    @property
    def attempts(self) -> int:
        """Return how many scheduling cycles there were."""
        name = "spinney_coscheduler_attempts_total"
        results = ("placed", "refused", "failed")
        return sum(int(self.registry.get_sample_value(name, {"result": result}) or 0) for result in results)

    def group(self, name: str) -> Group:
        return next(group for group in self.groups if group.key.name == name)

    def record(self, name: str) -> PodRecord:
        return next(record for record in self.cluster.pods() if record.name == name)

    # -- what happens in the cluster ---------------------------------------------------------------------------------

    def put(self, *objects: Node | Pod | PodGroup) -> None:
        """Have objects appear, or change."""
        for each in objects:
            change: Change[Any] = Change(key_of(each), self._old(each), each, "1")
            if isinstance(each, Node):
                self.intake.node(change)
            elif isinstance(each, Pod):
                self.intake.pod(change)
            else:
                self.intake.take_in(change)

    def gang(self, name: str, size: int, *, minimum: int | None = None, created: float = 0, **pod: Any) -> None:
        """Have a group and its pods appear."""
        self.put(a_group(name, size if minimum is None else minimum, created=created))
        self.put(*(a_pod(f"{name}-{number}", group=name, created=created, **pod) for number in range(size)))

    def delete(self, *names: str) -> None:
        """Have pods go."""
        for name in names:
            pod = self.record(name).pod
            self.intake.pod(Change(key_of(pod), pod, None, "1"))

    def _old(self, new: Any) -> Any:
        if isinstance(new, Pod):
            found = self.cluster.pod(self.key(new.metadata.name))
            return found.pod if found is not None else None
        if isinstance(new, Node):
            row = self.cluster.table.find(new.metadata.name)
            return self.cluster.table.nodes[row] if row is not None else None
        return None

    @staticmethod
    def key(name: str) -> PodKey:
        return PodKey(NAMESPACE, name)

    # -- running -----------------------------------------------------------------------------------------------------

    async def run(self, seconds: float = 0.0) -> None:
        """Schedule what is ready, and what becomes ready in the coming seconds."""
        end = self.runtime.clock.monotonic() + seconds
        while True:
            while self.scheduler.burst(1.0, 1000):  # noqa: ASYNC110 - binds get their turn
                await asyncio.sleep(0)
            for _ in range(5):
                await asyncio.sleep(0)
            if self.queue.counts["active"]:
                continue
            due = self.scheduler.next_due()
            if due is None or due > end:
                break
            await asyncio.sleep(max(due - self.runtime.clock.monotonic(), 0.001))
        rest = end - self.runtime.clock.monotonic()
        if rest > 0:
            await asyncio.sleep(rest)
            await self.run()

    def waiting(self) -> list[str]:
        """Return the pods that wait at Permit."""
        return [pod.key.name for pod in self.services.waiting]

    def _activate(self, keys: Iterable[Key]) -> None:
        self.queue.activate(keys)

    def _preempt(self, victims: Sequence[PodRecord], beneficiary: PodRecord, node: str) -> None:
        for victim in victims:
            self.preempted.append((victim.name, beneficiary.name))
            waiting = self.services.waiting.get(Key(*victim.key))
            if waiting is not None:
                waiting.reject("DefaultPreemption", "preempted")
            else:
                self.services.leaving[victim.key] = None

    def _nominate(self, record: PodRecord, node: str) -> None:
        self.nominated[record.name] = node
        if node:
            self.services.nominations.put(record, node)
        else:
            self.services.nominations.remove(Key(*record.key))


# -- builders ---------------------------------------------------------------------------------------------------------


def a_node(
    name: str, cpu: int = 4, *, labels: Mapping[str, str] | None = None, taints: tuple[Taint, ...] = (), **spec: Any
) -> Node:
    return Node(
        metadata=Metadata(name=name, uid=name, labels={"kubernetes.io/hostname": name, **(labels or {})}),
        spec=NodeSpec(taints=taints, **spec),
        status=NodeStatus(allocatable={"cpu": str(cpu), "memory": "64Gi", "pods": "110"}),
    )


def a_pod(
    name: str,
    *,
    group: str = "",
    cpu: str = "1",
    priority: int = 0,
    node: str = "",
    created: float = 0,
    started: float | None = None,
    phase: str = "",
    gates: tuple[str, ...] = (),
    labels: Mapping[str, str] | None = None,
    affinity: Affinity | None = None,
    spread: tuple[TopologySpreadConstraint, ...] = (),
    deleting: bool = False,
    **spec: Any,
) -> Pod:
    """Return a pod; one with a node runs there."""
    member = {COSCHEDULING_GROUP: group} if group else {}
    return Pod(
        metadata=Metadata(
            name=name,
            namespace=NAMESPACE,
            uid=f"uid-{name}",
            labels={**member, **(labels or {})},
            creation_timestamp=EPOCH + timedelta(seconds=created),
            deletion_timestamp=EPOCH if deleting else None,
        ),
        spec=PodSpec(
            node_name=node,
            scheduler_name=SCHEDULER,
            priority=priority,
            containers=(Container(name="main", image="app:1", resources=ResourceRequirements(requests={"cpu": cpu})),),
            scheduling_gates=tuple(PodSchedulingGate(name=gate) for gate in gates),
            affinity=affinity,
            topology_spread_constraints=spread,
            **spec,
        ),
        status=PodStatus(
            phase=phase or ("Running" if node else "Pending"),
            start_time=EPOCH + timedelta(seconds=started) if started is not None else None,
        ),
    )


def a_group(name: str, minimum: int, *, created: float = 0, **spec: Any) -> PodGroup:
    return PodGroup(
        metadata=ObjectMeta(
            name=name, namespace=NAMESPACE, uid=f"uid-{name}", creation_timestamp=EPOCH + timedelta(seconds=created)
        ),
        spec=PodGroupSpec(min_member=minimum, **spec),
    )

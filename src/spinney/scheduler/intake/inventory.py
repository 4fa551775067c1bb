"""Everything a scheduling session opens on, kept up to date by watch events.

An :class:`Inventory` takes objects as watches deliver them and keeps what the session scheduler needs of them: the
cluster's columns, the book of gangs, queues, topologies, claims. :meth:`Inventory.snapshot` is what a session opens on;
it costs the copy of small arrays plus what changed since the last one.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
import numpy as np

from spinney.api import coscheduling, kai, volcano, workload_v1alpha1, workload_v1alpha2, workload_v1beta1
from spinney.api.core import Node, Pod
from spinney.api.labels import KAI_NODE_POOL
from spinney.api.podgang import PodGang
from spinney.api.policy import PodDisruptionBudget
from spinney.api.resource_claims import DeviceClass, ResourceClaim, ResourceSlice
from spinney.api.scheduling import PriorityClass
from spinney.api.topology_binding import ClusterTopologyBinding
from spinney.binding.budgets import Budgets
from spinney.cluster.dra.book import ClaimBook
from spinney.cluster.filters.static_masks import StaticMasks
from spinney.cluster.filters.view import ClusterView
from spinney.cluster.labels import ABSENT
from spinney.cluster.pods import PodKey, PodRecord
from spinney.cluster.state import ClusterState, PodChange
from spinney.cluster.table import Mask, NodeTable
from spinney.gangs.book import GangBook, GangSnapshot
from spinney.gangs.membership import membership, membership_once_grouped
from spinney.gangs.sources import coscheduling as coscheduling_source
from spinney.gangs.sources import kai as kai_source
from spinney.gangs.sources import native, podgang
from spinney.gangs.sources import volcano as volcano_source
from spinney.gangs.sources.context import SourceContext
from spinney.gangs.tree import Gang, GangKey
from spinney.gangs.workloads import WorkloadGangs
from spinney.kube.keys import key_of
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.fairshare import NO_BOUND, Queue, QueueTree
from spinney.scheduler.fairshare.foreign import ForeignUse
from spinney.scheduler.fairshare.sources import queues_from_objects
from spinney.scheduler.framework.snapshot import Snapshot
from spinney.scheduler.intake.surroundings import Surroundings
from spinney.scheduler.topology.domains import DomainTrees
from spinney.scheduler.topology.levels import Topology, topology_of
from spinney.scheduler.topology.resolving import Topologies, TopologyKey


@dataclass(frozen=True, slots=True)
class NodePool:
    """A part of the cluster that one scheduler serves: nodes and pods with a value of a label, or without the label."""

    value: str
    """Empty: those that lack the label."""
    label: str = KAI_NODE_POOL

    def nodes(self, table: NodeTable) -> Mask:
        """Return which rows are in the pool."""
        column = table.labels.column(self.label)
        wanted = table.labels.value_id(self.label, self.value) if self.value else ABSENT
        if self.value and wanted == ABSENT:
            return np.zeros(table.capacity, dtype=np.bool_)
        found: Mask = column == wanted
        return found

    def has_pod(self, record: PodRecord) -> bool:
        """Tell whether a pod is to be placed in the pool."""
        return record.labels.get(self.label, "") == self.value


class Inventory:
    """What is known about the cluster. Mutable; one writer (the event loop), snapshots for sessions.

    ``scheduler_names`` are the names this scheduler serves; pods of other schedulers only take room.
    """

    def __init__(
        self,
        scheduler_names: Collection[str] = ("spinney-scheduler", "kai-scheduler"),
        *,
        cluster: ClusterState | None = None,
        node_pool: NodePool | None = None,
        wait_for_grouper: bool = False,
    ) -> None:
        self.scheduler_names = frozenset(scheduler_names)
        self.membership = membership_once_grouped if wait_for_grouper else membership
        self.node_pool = node_pool
        self._static = StaticMasks()
        self.cluster = cluster if cluster is not None else ClusterState()
        self._workloads = WorkloadGangs()
        self.gangs = GangBook(self.membership, self._workloads.derive, self._workloads.forget)
        self._surroundings = Surroundings()
        self.cluster.view.namespaces = self._surroundings.namespaces
        self.cluster.view.storage = self._surroundings.live
        self.claims = ClaimBook()
        self.budgets = Budgets()
        self._evicted: dict[GangKey, datetime] = {}
        self._queues: dict[str, Queue] = {}
        self._tree: QueueTree | None = None
        self._topologies: dict[TopologyKey, Topology] = {}
        self._resolution: Topologies | None = None
        self._domain_trees = DomainTrees()
        self._priority_classes: dict[str, PriorityClass] = {}
        self._groups: dict[GangKey, Callable[[SourceContext], Gang]] = {}
        self._foreign = ForeignUse()
        self.cluster.subscribe(self._pod_changed)
        for record in self.cluster.pods():
            self._pod_changed(PodChange(None, record))

    @classmethod
    def for_config(cls, config: SchedulerConfig) -> "Inventory":
        """Return an empty inventory of what a scheduler so configured serves."""
        pool = NodePool(config.node_pool) if config.node_pool is not None else None
        return cls(config.scheduler_names, node_pool=pool, wait_for_grouper=config.wait_for_grouper)

    # -- objects coming and going ------------------------------------------------------------------------------------

    def apply(self, found: msgspec.Struct) -> None:
        """Take in an object that appeared or changed; raises ``TypeError`` for a kind nobody here reads."""
        match found:
            case Pod():
                self.cluster.apply_pod(found)
            case Node():
                self.cluster.apply_node(found)
            case kai.Queue():
                for queue in queues_from_objects([found]):
                    self.put_queue(queue)
            case kai.Topology() | ClusterTopologyBinding():
                self.put_topology(topology_of(found))
            case PriorityClass():
                self._priority_classes[found.metadata.name] = found
                self._priorities_changed()
            case ResourceClaim() | ResourceSlice() | DeviceClass():
                self.claims.apply(found)
            case PodDisruptionBudget():
                self.budgets.put(found)
            case workload_v1alpha1.Workload():
                self.gangs.derive_again(self._workloads.put(found))
            case _:
                if not self._surroundings.apply(found):
                    self._apply_group(found)

    def delete(self, found: msgspec.Struct) -> None:
        """Take out an object that is gone."""
        match found:
            case Pod():
                self.cluster.delete_pod(PodKey(found.metadata.namespace or "", found.metadata.name))
            case Node():
                self.cluster.delete_node(found.metadata.name)
            case kai.Queue():
                self.remove_queue(found.metadata.name)
            case kai.Topology() | ClusterTopologyBinding():
                self._topologies.pop((found.kind, found.metadata.name), None)
                self._resolution = None
            case PriorityClass():
                self._priority_classes.pop(found.metadata.name, None)
                self._priorities_changed()
            case ResourceClaim() | ResourceSlice() | DeviceClass():
                self.claims.delete(found)
            case PodDisruptionBudget():
                self.budgets.remove(key_of(found))
            case workload_v1alpha1.Workload():
                self.gangs.derive_again(self._workloads.remove(found))
            case _:
                if not self._surroundings.delete(found):
                    for key in gang_makers(found):
                        self.remove_gang(key)

    def put_gang(self, gang: Gang) -> None:
        """Take in a gang that was made elsewhere."""
        self.gangs.put(gang)

    def remove_gang(self, key: GangKey) -> None:
        """Take out a gang."""
        self._groups.pop(key, None)
        self._evicted.pop(key, None)
        self.gangs.remove(key)

    def note_eviction(self, key: GangKey, moment: datetime) -> None:
        """Remember when pods of a gang were evicted, as far as anything depends on it."""
        members = self.gangs.members(key)
        if members is not None and members.gang.preemption_delay is not None:
            self._evicted[key] = moment

    def put_queue(self, queue: Queue) -> None:
        """Take in a queue that appeared or changed."""
        self._queues[queue.name] = queue
        self._tree = None

    def remove_queue(self, name: str) -> None:
        """Take out a queue."""
        self._queues.pop(name, None)
        self._tree = None

    def put_topology(self, topology: Topology) -> None:
        """Take in a topology that appeared or changed."""
        self._topologies[topology.kind, topology.name] = topology
        self._resolution = None

    # -- snapshots ---------------------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Return everything as it is now."""
        cluster = self.cluster
        ledger = cluster.ledger.fork()
        if self.node_pool is not None:
            ledger.table.restrict(self.node_pool.nodes(ledger.table))
        gangs = self.gangs.snapshot()
        view = ClusterView(ledger.table, cluster.view.pods.fork(), *self._surroundings.copies(), self._static)
        return Snapshot(
            ledger=ledger,
            pods=cluster.on_node.fork(),
            view=view,
            rule_carriers=cluster.rule_carriers,
            gangs=gangs,
            queues=self._queue_tree(gangs),
            topologies=self.topologies,
            claims=self.claims.fork(),
            domain_trees=self._domain_trees,
            has_stranded_pods=cluster.has_stranded_pods or self.node_pool is not None,
            releasing=tuple(cluster.releasing()),
            foreign=self._foreign.holdings(),
            budgets=self.budgets.fork(),
            evicted=dict(self._evicted),
        )

    # -- keeping it --------------------------------------------------------------------------------------------------

    def _pod_changed(self, change: PodChange) -> None:
        old, new = change
        was_ours = old is not None and self._serves(old)
        is_ours = new is not None and self._serves(new)
        if was_ours == (old is not None) and is_ours == (new is not None):
            self.gangs.pod_changed(change)
            return
        if was_ours or is_ours:
            self.gangs.pod_changed(PodChange(old if was_ours else None, new if is_ours else None))
        if old is not None and not was_ours:
            self._foreign.remove(old)
        if new is not None and not is_ours:
            self._foreign.add(new)

    def _serves(self, record: PodRecord) -> bool:
        if record.pod.spec.scheduler_name not in self.scheduler_names:
            return False
        return self.node_pool is None or self.node_pool.has_pod(record)

    def _apply_group(self, found: msgspec.Struct) -> None:
        for key, make in gang_makers(found).items():
            self._groups[key] = make
            self.gangs.put(make(self.gangs.context))

    def _priorities_changed(self) -> None:
        classes = self._priority_classes.values()
        fallback = [each.value for each in classes if each.global_default]
        base = SourceContext()
        values = {**base.priorities, **{each.metadata.name: each.value for each in classes}}
        default = fallback[0] if fallback else base.default_priority
        self.gangs.context = SourceContext(priorities=values, default_priority=default)
        for make in self._groups.values():
            self.gangs.put(make(self.gangs.context))
        self.gangs.derive_again(self._workloads.named())

    @property
    def topologies(self) -> Topologies:
        """Return what topology constraints mean, as it is now; the same until a topology changes."""
        if self._resolution is None:
            self._resolution = Topologies(self._topologies.values())
        return self._resolution

    @property
    def queues(self) -> QueueTree:
        """Return the queues there are objects of, as they are now."""
        if self._tree is None:
            self._tree = QueueTree(self._queues.values())
        return self._tree

    def _queue_tree(self, gangs: GangSnapshot) -> QueueTree:
        if self._queues:
            return self.queues
        # A cluster without Queue objects does not divide anything: every queue somebody names may hold all of it.
        names = sorted({members.gang.queue for members in gangs.gangs.values()})
        return QueueTree(Queue(name=name, quota=NO_BOUND) for name in names)


def gang_makers(found: Any) -> dict[GangKey, Callable[[SourceContext], Gang]]:
    """Return the gangs an object defines, each as a function of what else there is to know."""
    match found:
        case PodGang():
            return {podgang.key_of(found): lambda context: podgang.gang(found, context)}
        case kai.PodGroup():
            return {kai_source.key_of(found): lambda context: kai_source.gang(found, context)}
        case coscheduling.PodGroup():
            return {coscheduling_source.key_of(found): lambda context: coscheduling_source.gang(found, context)}
        case volcano.PodGroup():
            return {volcano_source.key_of(found): lambda context: volcano_source.gang(found, context)}
        case workload_v1alpha2.PodGroup() | workload_v1beta1.PodGroup():
            return {native.key_of(found): lambda context: native.gang(found, context)}
        case _:
            raise TypeError(f"the scheduler reads no objects of type {type(found).__module__}.{type(found).__name__}")

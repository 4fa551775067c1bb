"""Everything a scheduling session opens on, kept up to date by watch events.

An :class:`Inventory` takes objects as watches deliver them and keeps what the session scheduler needs of them: the
cluster's columns, the book of gangs, queues, topologies, claims. :meth:`Inventory.snapshot` is what a session opens on;
it costs the copy of small arrays plus what changed since the last one.
"""

from collections.abc import Collection
from datetime import datetime

import msgspec
import numpy as np

from spinney.api import kai
from spinney.api.labels import KAI_NODE_POOL
from spinney.api.topology_binding import ClusterTopologyBinding
from spinney.cluster.filters import ClusterView, StaticMasks
from spinney.cluster.labels import ABSENT
from spinney.cluster.pods import PodKey, PodRecord
from spinney.cluster.state import PodChange
from spinney.cluster.table import Mask, NodeTable
from spinney.gangs.book import GangBook, GangSnapshot
from spinney.gangs.checkpoints import EvictionRequest
from spinney.gangs.eviction_requests import EvictionRequests
from spinney.gangs.intake import ClusterIntake
from spinney.gangs.membership import membership, membership_once_grouped
from spinney.gangs.tree import Gang, GangKey
from spinney.kube.keys import Key
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.fairshare import GPU, NO_BOUND, Amounts, QueueInfo, QueueTree
from spinney.scheduler.fairshare.foreign import ForeignUse
from spinney.scheduler.fairshare.sources import queue_of
from spinney.scheduler.fairshare.totals import cluster_total
from spinney.scheduler.framework.snapshot import Snapshot
from spinney.scheduler.topology.domains import DomainTrees
from spinney.scheduler.topology.levels import TopologyLevels, topology_of
from spinney.scheduler.topology.resolving import Topologies, TopologyKey


class NodePool(msgspec.Struct, frozen=True):
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
        shared: ClusterIntake | None = None,
        node_pool: NodePool | None = None,
        wait_for_grouper: bool = False,
    ) -> None:
        self.scheduler_names = frozenset(scheduler_names)
        self.membership = membership_once_grouped if wait_for_grouper else membership
        self.node_pool = node_pool
        self._static = StaticMasks()
        self.shared = shared if shared is not None else ClusterIntake()
        self.cluster, self.claims, self.budgets = self.shared.cluster, self.shared.claims, self.shared.budgets
        self.gangs = GangBook(self.membership, self.shared.gangs)
        self.requests = EvictionRequests(lambda asked: asked.scheduler in ("", *self.scheduler_names))
        """Which pods were asked to go."""
        self._evicted: dict[GangKey, datetime] = {}
        self._queues: dict[str, QueueInfo] = {}
        self._tree: QueueTree | None = None
        self._boundless: tuple[frozenset[str], QueueTree] = frozenset(), QueueTree(())
        """The tree of queues that are only named, and those names."""
        self._topologies: dict[TopologyKey, TopologyLevels] = {}
        self._resolution: Topologies | None = None
        self._domain_trees = DomainTrees()
        self._foreign = ForeignUse()
        self.shared.gangs.subscribe(self)
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
            case kai.Queue():
                self.put_queue(queue_of(found))
            case kai.Topology() | ClusterTopologyBinding():
                self.put_topology(topology_of(found))
            case _:
                self.shared.apply(found)

    def delete(self, found: msgspec.Struct) -> None:
        """Take out an object that is gone."""
        match found:
            case kai.Queue():
                self.remove_queue(found.metadata.name)
            case kai.Topology() | ClusterTopologyBinding():
                self._topologies.pop((found.kind, found.metadata.name), None)
                self._resolution = None
            case _:
                self.shared.delete(found)

    def put_gang(self, gang: Gang) -> None:
        """Take in a gang that appeared or changed."""
        self.gangs.put(gang)

    def remove_gang(self, key: GangKey) -> None:
        """Take out a gang."""
        self._evicted.pop(key, None)
        self.gangs.remove(key)

    def attach(self, part: GangKey, before: GangKey, home: GangKey) -> None:
        """Have pods that name ``part`` belong to the gang ``home`` and no longer to ``before``."""
        self.gangs.attach(part, before)

    def derive_again(self, workload: Key | None) -> None:
        """Look again at the gangs of a Workload, or of all."""
        self.gangs.derive_again(workload)

    def note_eviction(self, key: GangKey, moment: datetime) -> None:
        """Remember when pods of a gang were evicted, as far as anything depends on it."""
        members = self.gangs.members(key)
        if members is not None and members.gang.preemption_delay is not None:
            self._evicted[key] = moment

    def put_queue(self, queue: QueueInfo) -> None:
        """Take in a queue that appeared or changed."""
        self._queues[queue.name] = queue
        self._tree = None

    def remove_queue(self, name: str) -> None:
        """Take out a queue."""
        self._queues.pop(name, None)
        self._tree = None

    def put_topology(self, topology: TopologyLevels) -> None:
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
        view = ClusterView(ledger.table, cluster.view.pods.fork(), *self.shared.surroundings.copies(), self._static)
        return Snapshot(
            ledger=ledger,
            pods=cluster.on_node.fork(),
            view=view,
            rule_carriers=cluster.rule_carriers,
            gangs=gangs,
            queues=self.queue_tree(gangs),
            topologies=self.topologies,
            claims=self.claims.fork(),
            domain_trees=self._domain_trees,
            has_stranded_pods=cluster.has_stranded_pods or self.node_pool is not None,
            releasing=tuple(cluster.releasing()),
            foreign=self._foreign.holdings(),
            serves=self._serves,
            budgets=self.budgets.fork(),
            evicted=dict(self._evicted),
            asked=self._asked(),
        )

    def _asked(self) -> dict[GangKey, dict[PodKey, EvictionRequest]]:
        """Return what pods were asked, by gang."""
        found: dict[GangKey, dict[PodKey, EvictionRequest]] = {}
        for key, asked in self.requests.all().items() if self.requests else ():
            record = self.cluster.pod(key)
            if record is not None:
                found.setdefault(self.gangs.membership(record)[0], {})[key] = asked
        return found

    # -- keeping it --------------------------------------------------------------------------------------------------

    def _pod_changed(self, change: PodChange) -> None:
        old, new = change
        was_ours = old is not None and self._serves(old)
        is_ours = new is not None and self._serves(new)
        changed = new if new is not None else old
        if changed is not None:
            self.requests.pod_changed(changed.key, new if is_ours else None)
        if was_ours == (old is not None) and is_ours == (new is not None):
            self.gangs.pod_changed(change)
            return
        if was_ours or is_ours:
            self.gangs.pod_changed(PodChange(old if was_ours else None, new if is_ours else None))
        if old is not None and not was_ours:
            self._foreign.count(old, -1)
        if new is not None and not is_ours:
            self._foreign.count(new, 1)

    def _serves(self, record: PodRecord) -> bool:
        if record.pod.spec.scheduler_name not in self.scheduler_names:
            return False
        return self.node_pool is None or self.node_pool.has_pod(record)

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

    def offered(self) -> Amounts:
        """Return what there is for queues to divide, as it is now."""
        table = self.cluster.table
        if self.node_pool is not None:
            table = self.cluster.ledger.fork().table
            table.restrict(self.node_pool.nodes(table))
        rows = ((table.find(name), count) for name, count in self.claims.catalogue.gpus.items())
        devices = sum(count for row, count in rows if row is not None and table.ready[row])
        return cluster_total(table, self._foreign.holdings()) + Amounts(gpu=devices * GPU)

    def queue_tree(self, gangs: GangSnapshot) -> QueueTree:
        """Return the queues that gangs are divided by: those there are objects of, else those that are named."""
        if self._queues:
            return self.queues
        # A cluster without Queue objects does not divide anything: every queue that a job names may hold all of it.
        names, tree = self._boundless
        if names != gangs.queues:
            tree = QueueTree(QueueInfo(name=name, quota=NO_BOUND) for name in sorted(gangs.queues))
            self._boundless = gangs.queues, tree
        return tree

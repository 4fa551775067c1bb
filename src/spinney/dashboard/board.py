"""The cluster as the page shows it: rows that watch events mark, and that are made again when they are read.

An event costs the update of the ledgers and a mark. :meth:`Board.delta` makes the marked rows again and returns those
that differ from what was shown before, so a busy node costs one row however often it changed meanwhile.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from spinney.api.core import Node, Pod
from spinney.api.kai import Queue, Topology
from spinney.api.podgang import PodGang
from spinney.api.topology_binding import ClusterTopologyBinding
from spinney.cluster.devices import gpus_on
from spinney.cluster.pods import PodKey, PodRecord
from spinney.cluster.state import PodChange
from spinney.cluster.statuses import WAITING, PodStatus
from spinney.dashboard.cells import USUAL_LEVELS, ZONE, Unit, node_row
from spinney.dashboard.history import ShownHistory
from spinney.dashboard.rows import Delta, GangRow, NodeRow, QueueRow, queue_rows, text_of
from spinney.gangs.book import GangBook, GangMembers
from spinney.gangs.membership import membership
from spinney.gangs.source_workloads import workload as workload_of
from spinney.gangs.sources import bare, podgang
from spinney.gangs.tree import Gang, GangKey
from spinney.kube.cache import Change
from spinney.kube.keys import Key
from spinney.runtime import Runtime
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.cycle.scheduler import Scheduler
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.intake.sources import OPTIONAL_KINDS
from spinney.scheduler.topology.levels import topology_of
from spinney.sim.overview.gang_table import GangWord, gang_line, levels_of, word_about
from spinney.sim.whatif.loading import SESSION_NAMES


class Board:
    """Rows of one cluster. Mutable; fed and read on one event loop."""

    def __init__(self, runtime: Runtime) -> None:
        self._clock = runtime.clock
        self.inventory = Inventory(SESSION_NAMES)
        self._scheduler = Scheduler(SchedulerConfig(scheduler_names=SESSION_NAMES), self.inventory, runtime=runtime)
        self.history = ShownHistory(runtime.clock)
        self._definitions = self.inventory.shared.gangs
        self.gangs = GangBook(membership, self._definitions)
        """Gangs of every scheduler's pods; the inventory's book has only those a session scheduler places."""
        self._nodes: dict[str, Node] = {}
        self._topologies: dict[tuple[str, str], Topology | ClusterTopologyBinding] = {}
        self._promised: dict[str, dict[PodKey, PodRecord]] = {}
        self.levels: tuple[str, ...] = ()
        """The labels that place nodes, broad to narrow."""
        self.unit: Unit = "GPU"
        """What a cell is."""
        self._layout_stale = self._queues_stale = True
        self._stale_nodes: dict[str, None] = {}
        self._stale_gangs: dict[GangKey, None] = {}
        self._moved_nodes: set[str] = set()
        """Nodes that came, went or have other labels: gangs on them say so."""
        self._node_rows: dict[str, NodeRow] = {}
        self._gang_rows: dict[GangKey, GangRow] = {}
        self.queue_rows: tuple[QueueRow, ...] = ()
        """Every queue as it was last made, children below their parent."""
        self._definitions.subscribe(self)
        self.inventory.cluster.subscribe(self._pod_changed)

    # -- events ------------------------------------------------------------------------------------------------------

    def take_in(self, change: Change[Any]) -> None:
        """Take in an object that appeared, changed or went."""
        found: Any = change.new if change.new is not None else change.old
        there = change.new is not None
        if type(found) in OPTIONAL_KINDS.values() or isinstance(found, Pod | Node):
            (self.inventory.apply if there else self.inventory.delete)(found)
        match found:
            case Pod():
                pass  # the cluster's state tells, with the pod as it was
            case Node():
                self._take_in_node(found, there=there, old=change.old)
            case Queue():
                self._queues_stale = True
            case Topology() | ClusterTopologyBinding():
                if there:
                    self._topologies[found.kind, found.metadata.name] = found
                else:
                    self._topologies.pop((found.kind, found.metadata.name), None)
                self._layout_stale = True

    def _take_in_node(self, node: Node, *, there: bool, old: Node | None) -> None:
        name = node.metadata.name
        if there:
            self._nodes[name] = node
        else:
            self._nodes.pop(name, None)
        self._stale_nodes[name] = None
        self._queues_stale = True
        labels = old.metadata.labels if old is not None and there else {}
        if old is None or not there or labels != node.metadata.labels:
            self._moved_nodes.add(name)
        if labels.keys() != node.metadata.labels.keys() or (gpus_on(node) > 0) != (self.unit == "GPU"):
            self._layout_stale = True

    def put_gang(self, gang: Gang) -> None:
        """Take in a gang that appeared or changed, or whose object says something else."""
        self.gangs.put(gang)
        self._mark(gang.key)

    def remove_gang(self, key: GangKey) -> None:
        """Take out a gang that is gone."""
        self.gangs.remove(key)
        self._mark(key)

    def attach(self, part: GangKey, before: GangKey, home: GangKey) -> None:
        """Have pods that name ``part`` belong to the gang ``home`` and no longer to ``before``."""
        self._mark(part, before, home)
        self.gangs.attach(part, before)

    def derive_again(self, workload: Key | None) -> None:
        """Look again at the gangs of a Workload, or of all."""
        self._mark(*self.gangs.derive_again(workload))

    def _mark(self, *keys: GangKey) -> None:
        self._stale_gangs |= dict.fromkeys(keys)
        self._queues_stale = True

    def _pod_changed(self, change: PodChange) -> None:
        self.gangs.pod_changed(change)
        self._queues_stale = True
        for record in change:
            if record is None:
                continue
            key, _ = self.gangs.membership(record)
            self._stale_gangs[key] = None
            if record.node:
                self._stale_nodes[record.node] = None
            nominated = record.pod.status.nominated_node_name
            if nominated:
                self._stale_nodes[nominated] = None
                self._promised.get(nominated, {}).pop(record.key, None)
        if change.old is not None:
            self.history.pod_left(change.old, self.gangs.membership(change.old)[0], there=change.new is not None)
        new = change.new
        if new is not None and new.pod.status.nominated_node_name and new.status is PodStatus.PENDING:
            self._promised.setdefault(new.pod.status.nominated_node_name, {})[new.key] = new

    # -- reading -----------------------------------------------------------------------------------------------------

    @property
    def node_rows(self) -> tuple[NodeRow, ...]:
        """Return every node as it was last made, in order of name."""
        return tuple(self._node_rows[name] for name in sorted(self._node_rows))

    def places(self, levels: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return each node's domain of each of these levels; empty where it has no such label."""
        return {
            name: tuple(node.metadata.labels.get(level, "") for level in levels) for name, node in self._nodes.items()
        }

    @property
    def gang_rows(self) -> tuple[GangRow, ...]:
        """Return every gang as it was last made, in order of namespace and name."""
        rows = self._gang_rows.values()
        return tuple(sorted(rows, key=lambda row: (row.namespace, row.name, row.source)))

    def pod_gang(self, key: GangKey) -> PodGang | None:
        """Return the object of a PodGang."""
        found = self._definitions.object_of(key)
        return found if isinstance(found, PodGang) else None

    def gang_row(self, key: GangKey) -> GangRow | None:
        """Return one gang as it was last made."""
        return self._gang_rows.get(key)

    def delta(self, *, queues: bool = True) -> Delta:
        """Make the rows again that events have marked, and return what differs; ``queues`` may wait for their turn."""
        now = self._clock.now()
        levels = self._lay_out() if self._layout_stale else None
        nodes, gone_nodes = self._changed_nodes()
        gangs, gone_gangs = self._changed_gangs(now)
        changed = None
        if queues and self._queues_stale:
            self._queues_stale = False
            rows = queue_rows(self._scheduler)
            if rows != self.queue_rows:
                changed = self.queue_rows = rows
        return Delta(
            at=now,
            nodes=tuple(nodes),
            gangs=tuple(gangs),
            gone_nodes=tuple(gone_nodes),
            gone_gangs=tuple(map(text_of, gone_gangs)),
            queues=changed,
            levels=levels,
        )

    def _lay_out(self) -> tuple[str, ...] | None:
        """Choose levels and unit; returns the levels if either is another than before."""
        self._layout_stale = False
        labels = {key for node in self._nodes.values() for key in node.metadata.labels}
        found = [key for _, key in reversed(levels_of(map(topology_of, self._topologies.values()), labels))]
        levels = found or [key for key in USUAL_LEVELS if key in labels]
        if ZONE in labels and ZONE not in levels:
            levels.insert(0, ZONE)
        unit: Unit = "GPU" if not self._nodes or any(map(gpus_on, self._nodes.values())) else "CPU"
        if (tuple(levels), unit) == (self.levels, self.unit):
            return None
        self.levels, self.unit = tuple(levels), unit
        self._stale_nodes = dict.fromkeys(self._nodes)
        self._stale_gangs |= dict.fromkeys(self._gang_rows)
        return self.levels

    def _changed_nodes(self) -> tuple[list[NodeRow], list[str]]:
        stale, self._stale_nodes = self._stale_nodes, {}
        cluster = self.inventory.cluster
        changed, gone = [], []
        for name in stale:
            node, row = self._nodes.get(name), cluster.table.find(name)
            if node is None or row is None:
                if self._node_rows.pop(name, None) is not None:
                    gone.append(name)
                continue
            placed = cluster.on_node.of_row(row).values()
            promised = self._promised.get(name, {}).values()
            made = node_row(node, self.levels, self.unit, placed=placed, promised=promised, gangs=self.gangs)
            if made != self._node_rows.get(name):
                self._node_rows[name] = made
                changed.append(made)
        return changed, gone

    def _changed_gangs(self, now: datetime) -> tuple[list[GangRow], list[GangKey]]:
        stale, self._stale_gangs = self._stale_gangs, {}
        if self._moved_nodes:
            moved, self._moved_nodes = self._moved_nodes, set()
            stale |= {key: None for key, row in self._gang_rows.items() if not moved.isdisjoint(row.nodes)}
        labels = {name: node.metadata.labels for name, node in self._nodes.items()}
        changed, gone = [], []
        for key in stale:
            made = self._gang(key, labels)
            if made is None:
                if self._gang_rows.pop(key, None) is not None:
                    gone.append(key)
                    self.history.state(key, "gone", now)
            elif made != self._gang_rows.get(key):
                members = self.gangs.members(key)
                self.history.state(key, made.state, now, uid=members.gang.uid if members is not None else "")
                self._gang_rows[key] = made
                changed.append(made)
        return changed, gone

    def _gang(self, key: GangKey, labels: Mapping[str, Mapping[str, str]]) -> GangRow | None:
        members = self.gangs.members(key)
        if members is None or key.source == bare.SOURCE or self._shown_as_kai(key, members):
            return None
        found = self.pod_gang(GangKey(podgang.SOURCE, key.namespace, key.name))
        levels = [(level.rpartition("/")[2], level) for level in reversed(self.levels)]
        said = word_about(found) if found is not None and key.source == podgang.SOURCE else GangWord()
        workload = workload_of(found) if found is not None else None
        line = gang_line(key, members, (labels, levels), said, workload)
        records = [record for _, record in members.pods.values()]
        return GangRow(
            **{name: getattr(line, name) for name in line.__struct_fields__},
            key=text_of(key),
            created=members.gang.created or min((each.created for each in records if each.created), default=None),
            waiting_since=min(filter(None, map(_waits_since, records)), default=None),
        )

    def _shown_as_kai(self, key: GangKey, members: GangMembers) -> bool:
        """Tell whether a gang that KAI places is there as the PodGroup its pods name: that one has the pods."""
        if key.source != podgang.SOURCE or members.pods:
            return False
        other = self.gangs.members(GangKey("kai", key.namespace, key.name))
        return other is not None and bool(other.pods)


def _waits_since(record: PodRecord) -> datetime | None:
    if record.status not in WAITING:
        return None
    condition = record.pod.condition("PodScheduled")
    said = condition.last_transition_time if condition is not None and condition.status == "False" else None
    return said or record.created

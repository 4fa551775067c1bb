"""What the pages of ``top`` show, as values: gangs, nodes and queues of a cluster at one moment."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from spinney.api.core import Node
from spinney.api.kai import QUEUE, Queue
from spinney.cli.pictures.shares import QueueShare, Use, queue_shares
from spinney.cluster.devices import gpus_on
from spinney.cluster.pods import PodRecord
from spinney.cluster.statuses import ACTIVE_ALLOCATED
from spinney.explain.amounts import counted
from spinney.gangs.sources import bare
from spinney.gangs.tree import GangKey
from spinney.scheduler.intake.inventory import Inventory
from spinney.sim.overview.gang_table import GangLine
from spinney.sim.snapshots.snapshot import ClusterSnapshot

WAITING = ("pending", "gated", "empty", "starting", "running", "ended")
"""States of gangs, those that need attention first."""


class NodeLine(NamedTuple):
    """One node: how it fares, its GPUs, and how many pods are on it."""

    name: str
    state: str
    gpus: int
    used: int
    pods: int


class PodLine(NamedTuple):
    """One pod of a gang or on a node."""

    name: str
    gang: str
    node: str
    state: str
    gpus: int
    reason: str


@dataclass(frozen=True)
class Content:
    """A cluster at one moment. What a page needs is worked out when that page is shown."""

    snapshot: ClusterSnapshot
    lines: Sequence[GangLine]
    """Gangs, and pods that are in none."""
    inventory: Inventory
    namespace: str | None = None
    """Whose gangs are listed; nodes and queues have what everybody holds."""

    @cached_property
    def shown(self) -> Sequence[GangLine]:
        """Return the gangs and single pods of the namespace."""
        return [line for line in self.lines if self.namespace in (None, line.namespace)]

    @cached_property
    def gangs(self) -> Sequence[GangLine]:
        """Return the gangs of the namespace, those that wait first."""
        found = [line for line in self.shown if line.source != bare.SOURCE]
        return sorted(found, key=lambda line: (WAITING.index(line.state), line.namespace, line.name))

    @cached_property
    def nodes(self) -> Sequence[NodeLine]:
        used = dict.fromkeys((node.metadata.name for node in self.snapshot.nodes), 0)
        pods = dict(used)
        for record in self.inventory.cluster.pods():
            if record.node in used and record.status in ACTIVE_ALLOCATED:
                used[record.node] += record.request.gpus
                pods[record.node] += 1
        return [
            NodeLine(
                node.metadata.name, node_state(node), gpus_on(node), used[node.metadata.name], pods[node.metadata.name]
            )
            for node in sorted(self.snapshot.nodes, key=lambda node: node.metadata.name)
        ]

    @cached_property
    def queues(self) -> Sequence[QueueShare]:
        """Return the queues, children below their parent, with what the gangs in them hold and wait for."""
        return shares(self.snapshot, self.lines)

    @property
    def totals(self) -> str:
        """Return the cluster in a line."""
        nodes, gangs = self.nodes, self.gangs
        states = sorted(Counter(node.state for node in nodes if node.state != "ready").items())
        unusable = f" ({', '.join(f'{count} {state}' for state, count in states)})" if states else ""
        waiting = [gang for gang in gangs if gang.state in ("pending", "gated")]
        parts = [
            counted(len(nodes), "node") + unusable,
            f"{sum(node.used for node in nodes)} of {counted(sum(node.gpus for node in nodes), 'GPU')} in use",
            f"{counted(len(gangs), 'gang')}, {len(waiting)} waiting"
            + (f" for {counted(sum(gang.gpus - gang.gpus_held for gang in waiting), 'GPU')}" if waiting else ""),
            counted(sum(line.pods for line in self.shown), "pod"),
        ]
        return " · ".join(parts)

    def members(self, key: GangKey) -> list[PodLine]:
        """Return the pods of a gang by name."""
        found = self.inventory.gangs.members(key)
        return sorted(_pod(record, key.name) for _, record in found.pods.values()) if found is not None else []

    def on_node(self, name: str) -> list[PodLine]:
        membership = self.inventory.membership
        return sorted(
            _pod(record, "" if (key := membership(record)[0]).source == bare.SOURCE else str(key))
            for record in self.inventory.cluster.pods()
            if record.node == name
        )


def shares(snapshot: ClusterSnapshot, lines: Sequence[GangLine]) -> list[QueueShare]:
    """Return the queues of a cluster with what the gangs in them hold and wait for."""
    uses = [Use(line.queue, line.gpus_held, line.gpus - line.gpus_held) for line in lines if line.state != "ended"]
    return queue_shares(snapshot.of(QUEUE, Queue), uses)


def _pod(record: PodRecord, gang: str) -> PodLine:
    condition = record.pod.condition("PodScheduled")
    reason = condition.message if condition is not None and condition.status == "False" else ""
    state = "ready" if record.pod.is_true("Ready") else record.status.name.lower()
    return PodLine(str(record.key), gang, record.node, state, record.request.gpus, reason)


def node_state(node: Node) -> str:
    """Return how a node fares, in a word or two."""
    return "not ready" if not node.ready else "cordoned" if node.spec.unschedulable else "ready"

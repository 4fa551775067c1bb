"""What the search for remedies knows about the gang that waits: its pods, its object, where it nearly fits."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import Any

from spinney.api.affinity import Taint
from spinney.api.core import Node, Pod
from spinney.api.labels import HOSTNAME
from spinney.api.podgang import POD_GANG, PodGang
from spinney.cluster.filters.obstacles import OF_THE_NODE
from spinney.cluster.filters.taint_toleration import tolerates
from spinney.cluster.pods import PodRecord
from spinney.cluster.statuses import WAITING
from spinney.explain.reasons import Explanation
from spinney.gangs.tree import Gang, GangKey, Member
from spinney.scheduler.topology.levels import TopologyLevels
from spinney.sim.remedies.at_sources import pod_gang_of
from spinney.sim.remedies.change import Makers
from spinney.sim.remedies.node_groups import AddableNodes
from spinney.sim.snapshots.snapshot import ClusterSnapshot, identity, resource_of
from spinney.sim.whatif.simulation import Simulation


@dataclass(frozen=True, kw_only=True)
class Situation:
    """A waiting gang on a snapshot; ``simulation`` holds that snapshot and has not run."""

    snapshot: ClusterSnapshot
    simulation: Simulation
    key: GangKey
    explanation: Explanation | None = None
    node_groups: Sequence[AddableNodes] = ()
    """The kinds of nodes that could be added; empty: nobody has said."""

    @cached_property
    def members(self) -> list[PodRecord]:
        pods = self.simulation.inventory.cluster.pods()
        return [record for record in pods if self.simulation.gang_of(record) == self.key]

    @property
    def waiting(self) -> list[PodRecord]:
        return [each for each in self.members if each.status in WAITING]

    @cached_property
    def makers(self) -> Makers:
        """Return what tells what pods are made from."""
        return Makers(self.snapshot)

    @property
    def pending(self) -> int:
        return len(self.waiting)

    @property
    def short_of(self) -> int | None:
        """Return how many pods of its minimum are too many for the nodes or for the queue; ``None`` if unknown."""
        told = self.explanation
        if told is not None and told.queue is not None:
            over = told.queue.used + told.queue.requested - told.queue.bound
            each = told.queue.requested / max(told.needed, 1)
            return ceil(over / each) if over > 0 and each else None
        return told.needed - told.placed if told is not None and 0 < told.placed < told.needed else None

    @cached_property
    def kinds_of_pods(self) -> list[Pod]:
        """Return one waiting pod of each kind: those that ask for the same are alike."""
        return list({record.request.number: record.pod for record in self.waiting}.values())

    @cached_property
    def gang(self) -> Gang | None:
        """Return the gang as the schedulers understand it."""
        return self.simulation.gang(self.key)

    @cached_property
    def definition(self) -> Any:
        """Return the object that defines the gang; ``None`` for a single pod."""
        return self.simulation.inventory.shared.gangs.object_of(self.key)

    @cached_property
    def pod_gang(self) -> PodGang | None:
        """Return the PodGang of the gang: the object that defines it, or what a backend made that from."""
        found = self.definition
        if found is None or isinstance(found, PodGang):
            return found
        return pod_gang_of(found, {identity(each): each for each in self.snapshot.of(POD_GANG, PodGang)})

    def redefined(self, snapshot: ClusterSnapshot, change: Callable[[Any], Any]) -> ClusterSnapshot:
        """Return ``snapshot`` with the object that defines the gang changed, and the PodGang that it is made from."""
        sources = (self.definition, self.pod_gang)
        names = {(resource_of(each), identity(each)) for each in sources if each is not None}
        return snapshot.with_objects(
            change(found)
            for resource in {resource for resource, _ in names}
            for found in snapshot.objects[resource]
            if (resource, identity(found)) in names
        )

    # -- topology ----------------------------------------------------------------------------------------------------

    @cached_property
    def topology(self) -> TopologyLevels | None:
        """Return the topology that the gang's required levels are about."""
        topologies = self.simulation.inventory.topologies
        for constraint in _constraints(self.gang):
            if (found := topologies.required(constraint)) is not None:
                return found[0]
        return topologies.first

    @cached_property
    def level_keys(self) -> tuple[str, ...]:
        """Return the node labels of that topology, coarse to fine, less the one that names each host."""
        levels = self.topology.levels if self.topology is not None else ()
        return tuple(key for key in levels if key != HOSTNAME)

    def level_name(self, key: str) -> str:
        """Return what people call the level of a node label."""
        return self.topology.called(key) if self.topology is not None else key.rpartition("/")[2]

    @cached_property
    def required_depth(self) -> int | None:
        """Return which level of the topology is the coarsest that the gang requires; 0 is the broadest."""
        if self.topology is None:
            return None
        depths = [self.topology.depth(each.required) for each in _constraints(self.gang)]
        return min((depth for depth in depths if depth is not None), default=None)

    @property
    def required_key(self) -> str | None:
        """Return the node label of the coarsest level the gang requires, unless each node is a domain of its own."""
        if self.topology is None or self.required_depth is None:
            return None
        key = self.topology.levels[self.required_depth]
        return key if key in self.level_keys else None

    @cached_property
    def nearest(self) -> Mapping[str, str] | None:
        """Return the topology labels of the domain where the gang nearly fits; ``None`` if none is known."""
        miss = self.explanation.domains[0] if self.explanation is not None and self.explanation.domains else None
        if miss is None or not miss.domain or self.required_key is None:
            return None
        path = self.level_keys[: self.level_keys.index(self.required_key) + 1]
        for node in self.snapshot.nodes:
            labels = node.metadata.labels
            if miss.domain in (labels.get(self.required_key), ".".join(labels.get(key, "") for key in path)):
                return {key: labels[key] for key in self.level_keys if key in labels}
        return None

    def domain_name(self, labels: Mapping[str, str]) -> str:
        """Return what explanations call the domain of the required level that has these labels: its path."""
        path = self.level_keys[: self.level_keys.index(self.required_key) + 1] if self.required_key is not None else ()
        return ".".join(labels[key] for key in path if key in labels)

    def nearest_first(self, nodes: Iterable[Node]) -> list[Node]:
        """Return nodes in order of name, those of the nearest domain first."""
        near = self.nearest or {}
        key = self.required_key or ""

        def far(node: Node) -> bool:
            return bool(near) and node.metadata.labels.get(key) != near.get(key)

        return sorted(nodes, key=lambda node: (far(node), node.metadata.name))

    @cached_property
    def untolerated_taints(self) -> list[Taint]:
        """Return the taints of nodes, other than those of a node's own state, that some pod does not tolerate."""
        found = {
            taint_word(taint): taint
            for node in self.snapshot.nodes
            for taint in node.spec.taints
            if not taint.key.startswith(OF_THE_NODE)
            and any(not tolerates(pod.spec.tolerations, (taint,)) for pod in self.kinds_of_pods)
        }
        return [found[word] for word in sorted(found)]


def taint_word(taint: Taint) -> str:
    """Return a taint as kubectl writes it."""
    return f"{taint.key}{'=' if taint.value else ''}{taint.value}:{taint.effect}"


def is_ready(node: Node) -> bool:
    """Tell whether a node says that it is ready, or says nothing."""
    return all(each.status == "True" for each in node.status.conditions if each.type == "Ready")


def _constraints(gang: Gang | None) -> list[Any]:
    """Return the constraints of a gang that require a level, from the root down."""
    found: list[Any] = []

    def descend(member: Member) -> None:
        if member.topology is not None and member.topology.required:
            found.append(member.topology)
        for child in getattr(member, "members", ()):
            descend(child)

    if gang is not None:
        descend(gang.root)
    return found

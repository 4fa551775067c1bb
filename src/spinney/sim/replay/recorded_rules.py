"""Whether placements keep to what a recorded cluster's objects say: code that reads them and nothing of the scheduler.

Looked at are taints, node selectors, required affinity to nodes, and required levels of topology, at every part of a
gang. What only had better be so, and affinity to other pods, is not.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from spinney.api.affinity import NodeSelectorRequirement, NodeSelectorTerm, Taint
from spinney.api.core import Node, Pod
from spinney.api.kai import Topology
from spinney.api.topology_binding import ClusterTopologyBinding
from spinney.gangs.tree import Member, PodSet
from spinney.sim.replay.trace import ClusterChange, Job

_REPELLING: Final = frozenset({"NoSchedule", "NoExecute"})
CORDONED: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


class RecordedRules:
    """Nodes and topologies as they are at a moment. Mutable: it is moved on through the changes of a trace."""

    def __init__(self, changes: Sequence[ClusterChange]) -> None:
        self._changes = changes
        self._passed = 0
        self._nodes: dict[str, Node] = {}
        self._keys: dict[tuple[str, str], str] = {}
        """The node label of a level, by topology and any name of the level."""

    def move_to(self, moment: float) -> None:
        """Take in what changes until then."""
        while self._passed < len(self._changes) and self._changes[self._passed].at <= moment:
            found = self._changes[self._passed].found
            self._passed += 1
            if isinstance(found, Node):
                self._nodes[found.metadata.name] = found
            elif isinstance(found, Topology):
                for level in found.spec.levels:
                    self._keys[found.metadata.name, level.alias or level.node_label] = level.node_label
            elif isinstance(found, ClusterTopologyBinding):
                for each in found.spec.levels:
                    self._keys[found.metadata.name, each.domain] = each.key

    def problems(self, job: Job, nodes: Sequence[str]) -> Iterator[str]:
        """Yield which rules pods of a job break that start on these nodes now."""
        if job.recorded is None:
            return
        for recorded, name in zip(job.recorded.pods, nodes, strict=False):
            node = self._nodes.get(name)
            if node is not None and (why := _repels(node, recorded.pod)):
                yield f"a pod is on {name}, {why}"
        places: dict[str, list[str]] = {}
        for recorded, name in zip(job.recorded.pods, nodes, strict=False):
            places.setdefault(recorded.pod_set, []).append(name)
        yield from self._apart(job.recorded.gang.root, places)

    def _apart(self, member: Member, places: Mapping[str, Sequence[str]]) -> Iterator[str]:
        """Yield which parts of a gang are in several domains of a level that they require."""
        constraint = member.topology
        if constraint is not None and constraint.required:
            key = self._keys.get((constraint.topology, constraint.required), constraint.required)
            names = {name for pod_set in member.pod_sets() for name in places.get(pod_set.name, ())}
            domains = {self._nodes[name].metadata.labels.get(key) for name in names if name in self._nodes}
            if len(domains) != 1 or None in domains:
                part = f"pods of {member.name}" if member.name else "its pods"
                yield f"{part} are in {len(domains)} values of {key}"
        if not isinstance(member, PodSet):
            for each in member.members:
                yield from self._apart(each, places)


def tolerates(pod: Pod, taint: Taint) -> bool:
    """Tell whether a pod puts up with a taint."""
    return any(each.tolerates(taint) for each in pod.spec.tolerations)


def _repels(node: Node, pod: Pod) -> str:
    """Return why a pod may not be on a node; empty if it may."""
    for taint in node.spec.taints:
        if taint.effect in _REPELLING and not tolerates(pod, taint):
            return f"which has the taint {taint.key}={taint.value}:{taint.effect}"
    labels = node.metadata.labels
    for key, text in pod.spec.node_selector.items():
        if labels.get(key) != text:
            return f"where {key} is {labels.get(key)}, and not {text}"
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    if required is not None and not any(matches_node(term, node) for term in required.node_selector_terms):
        return "which its affinity does not allow"
    return ""


def matches_node(term: NodeSelectorTerm, node: Node) -> bool:
    """Tell whether a node is one of those that a term means."""
    fields = {"metadata.name": node.metadata.name}
    found = [
        *(_matches(each, node.metadata.labels) for each in term.match_expressions),
        *(_matches(each, fields) for each in term.match_fields),
    ]
    return bool(found) and all(found)


def _matches(wanted: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    text = labels.get(wanted.key)
    match wanted.operator:
        case "In":
            return text in wanted.values
        case "NotIn":
            return text not in wanted.values
        case "Exists":
            return text is not None
        case "DoesNotExist":
            return text is None
        case "Gt" | "Lt":
            return _compares(text, wanted)
        case _:
            return False


def _compares(text: str | None, wanted: NodeSelectorRequirement) -> bool:
    try:
        left, right = int(text or ""), int(wanted.values[0])
    except (ValueError, IndexError):
        return False
    return left > right if wanted.operator == "Gt" else left < right

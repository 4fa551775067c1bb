"""What exactly on one node keeps a pod away.

A filter refuses with kube-scheduler's words, which count nodes and name neither the taint nor the label. Asked about
one node, this room names them.
"""

from typing import Final

from spinney.api.affinity import NodeSelectorRequirement, NodeSelectorTerm
from spinney.api.core import Node, Pod
from spinney.cluster.filters import (
    node_affinity,
    node_conditions,
    node_unschedulable,
    taint_toleration,
    topology_spread,
)
from spinney.cluster.table import NodeTable

OF_THE_NODE: Final = "node.kubernetes.io/"
"""Taints that Kubernetes keeps for a node's own state: they go with the state."""
_CONDITIONS: Final = {node_unschedulable.NAME: "{node} is cordoned", node_conditions.NAME: "{node} is not ready"}


def obstacle(table: NodeTable, pod: Pod, filter_name: str, node: str) -> str | None:
    """Return what ``filter_name`` has against ``pod`` on ``node``; ``None`` if its usual words say it."""
    found = table.nodes[table.row(node)]
    if found is None:
        return None
    if filter_name == taint_toleration.NAME:
        return _toleration(pod, found)
    if filter_name in _CONDITIONS:
        besides = _toleration(pod, found, mirrored=False)
        return f"{_CONDITIONS[filter_name].format(node=node)}{f', and {besides}' if besides else ''}"
    if filter_name == topology_spread.NAME:
        return _spread_by(pod, found)
    return _labels(pod, found) if filter_name == node_affinity.NAME else None


def _toleration(pod: Pod, node: Node, *, mirrored: bool = True) -> str | None:
    """Return what is not tolerated; not ``mirrored``: less the taints Kubernetes keeps for a node's own state."""
    missing = [
        taint
        for taint in node.spec.taints
        if not taint_toleration.tolerates(pod.spec.tolerations, (taint,))
        and (mirrored or not taint.key.startswith(OF_THE_NODE))
    ]
    names = [f"{taint.key}{'=' if taint.value else ''}{taint.value or ''}:{taint.effect}" for taint in missing]
    taints = f"the taint {names[0]}" if len(names) == 1 else f"the taints {', '.join(names)}"
    return f"{node.metadata.name} has {taints}, not tolerated by the pod" if names else None


def _spread_by(pod: Pod, node: Node) -> str | None:
    """Return which labels the node lacks that the pod has to be spread by; ``None`` if it has all."""
    wanted = [each for each in pod.spec.topology_spread_constraints if each.when_unsatisfiable == "DoNotSchedule"]
    missing = dict.fromkeys(each.topology_key for each in wanted if each.topology_key not in node.metadata.labels)
    return f"{node.metadata.name} lacks the label {', '.join(missing)} that pods are spread by" if missing else None


def _labels(pod: Pod, node: Node) -> str | None:
    """Return what the node lacks of the selector, or which terms of the affinity it does not match."""
    labels = node.metadata.labels
    missing = [f"{key}={value}" for key, value in pod.spec.node_selector.items() if labels.get(key) != value]
    if missing:
        return f"{node.metadata.name} lacks the label {', '.join(missing)} of the pod's node selector"
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    terms = [_term(each) for each in required.node_selector_terms] if required is not None else []
    return f"{node.metadata.name} does not match the pod's node affinity: {', or '.join(terms)}" if terms else None


def _term(term: NodeSelectorTerm) -> str:
    """Return a term as kubectl writes selectors."""
    return ", ".join(map(_comparison, (*term.match_expressions, *term.match_fields))) or "an empty term matches no node"


def _comparison(wanted: NodeSelectorRequirement) -> str:
    match wanted.operator:
        case "Exists":
            return wanted.key
        case "DoesNotExist":
            return f"!{wanted.key}"
        case "Gt" | "Lt":
            return f"{wanted.key} {'>' if wanted.operator == 'Gt' else '<'} {' '.join(wanted.values)}"
        case _:
            return f"{wanted.key} {wanted.operator.lower()} ({', '.join(wanted.values)})"

"""What exactly on one node keeps a pod away.

A filter refuses with kube-scheduler's words, which count nodes and name neither the taint nor the label. Asked about
one node, this room names them.
"""

from typing import Final

from spinney.api.core import Node, Pod
from spinney.cluster.filters import node_affinity, node_conditions, node_unschedulable, taint_toleration
from spinney.cluster.table import NodeTable

_OF_THE_NODE: Final = "node.kubernetes.io/"
_CONDITIONS: Final = {
    node_unschedulable.NAME: "{node} is cordoned",
    node_conditions.NAME: "{node} is not ready",
}


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
    return _labels(pod, found) if filter_name == node_affinity.NAME else None


def _toleration(pod: Pod, node: Node, *, mirrored: bool = True) -> str | None:
    """Return what is not tolerated; not ``mirrored``: less the taints Kubernetes keeps for a node's own state."""
    missing = [
        taint
        for taint in node.spec.taints
        if not taint_toleration.tolerates(pod.spec.tolerations, (taint,))
        and (mirrored or not taint.key.startswith(_OF_THE_NODE))
    ]
    names = [f"{taint.key}{'=' if taint.value else ''}{taint.value or ''}:{taint.effect}" for taint in missing]
    taints = f"the taint {names[0]}" if len(names) == 1 else f"the taints {', '.join(names)}"
    return f"{node.metadata.name} has {taints}, not tolerated by the pod" if names else None


def _labels(pod: Pod, node: Node) -> str | None:
    labels = node.metadata.labels
    missing = [f"{key}={value}" for key, value in pod.spec.node_selector.items() if labels.get(key) != value]
    if not missing or (pod.spec.affinity is not None and pod.spec.affinity.node_affinity is not None):
        return None
    return f"{node.metadata.name} lacks the label {', '.join(missing)} of the pod's node selector"

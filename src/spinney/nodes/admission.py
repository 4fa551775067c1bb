"""Whether a node takes a pod that was bound to it: the checks a kubelet makes on its own.

A scheduler that decided on stale facts, or that does not know a rule, finds its pod failed with these reasons. A
resource that the node has never heard of is ignored, as kubelets do: it may be accounted for by the cluster.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from spinney.api.affinity import NodeSelectorRequirement, NodeSelectorTerm
from spinney.api.pod_requests import Amounts
from spinney.api.selectors import Requirement, SelectorOperator
from spinney.nodes.pods import BoundPod

NODE_AFFINITY: Final = "NodeAffinity"
_OWN_RESOURCES = ("pods", "cpu", "memory", "ephemeral-storage")  # others are handed out by device plugins


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a node refused a pod, as it stands in the pod's status."""

    reason: str
    message: str


def admit(
    pod: BoundPod,
    wanted: Amounts,
    *,
    node: str,
    labels: Mapping[str, str],
    allocatable: Amounts,
    used: Amounts,
) -> Rejection | None:
    """Return None if the node takes the pod, or why not. ``used`` is what its other running pods take."""
    return (
        _devices(wanted, allocatable, used)
        or _resources(wanted, allocatable, used)
        or _affinity(pod, node=node, labels=labels)
    )


def _devices(wanted: Amounts, allocatable: Amounts, used: Amounts) -> Rejection | None:
    for name in sorted(wanted.keys() - set(_OWN_RESOURCES)):
        available = allocatable.get(name, 0) - used.get(name, 0)
        if name in allocatable and wanted[name] > available:
            return Rejection(
                "UnexpectedAdmissionError",
                f"Allocate failed due to requested number of devices unavailable for {name}. "
                f"Requested: {wanted[name]}, Available: {available}, which is unexpected",
            )
    return None


def _resources(wanted: Amounts, allocatable: Amounts, used: Amounts) -> Rejection | None:
    for name in _OWN_RESOURCES:
        taken, limit = used.get(name, 0), allocatable.get(name, 0)
        if name in allocatable and wanted.get(name, 0) > limit - taken:
            return Rejection(
                f"OutOf{name}",
                f"Node didn't have enough resource: {name}, "
                f"requested: {wanted[name]}, used: {taken}, capacity: {limit}",
            )
    return None


def _affinity(pod: BoundPod, *, node: str, labels: Mapping[str, str]) -> Rejection | None:
    if _is_selected(pod, node=node, labels=labels):
        return None
    return Rejection(NODE_AFFINITY, "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector")


def _is_selected(pod: BoundPod, *, node: str, labels: Mapping[str, str]) -> bool:
    if any(labels.get(key) != wanted for key, wanted in pod.spec.node_selector.items()):
        return False
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    if required is None:
        return True
    return any(_term(term, node=node, labels=labels) for term in required.node_selector_terms)


def _term(term: NodeSelectorTerm, *, node: str, labels: Mapping[str, str]) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {"metadata.name": node}
    return _all(term.match_expressions, labels) and _all(term.match_fields, fields)


def _all(requirements: tuple[NodeSelectorRequirement, ...], found: Mapping[str, str]) -> bool:
    return all(Requirement(r.key, SelectorOperator(r.operator), r.values).matches(found) for r in requirements)

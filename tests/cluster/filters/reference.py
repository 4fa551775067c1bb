"""The filters again, node by node and in plain Python: what the columns are compared with.

Written from the rules, not from the kernels: every function looks at one node and counts pods by walking over all of
them. A filter returns its reasons, none if the node passes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from spinney.api.affinity import NodeSelectorRequirement, NodeSelectorTerm, PodAffinityTerm, Taint
from spinney.api.core import Node, Pod
from spinney.api.quantity import milli, value
from spinney.api.selectors import LabelSelector


@dataclass(frozen=True)
class Scene:
    """The cluster a node is judged in."""

    nodes: Mapping[str, Node]
    placed: tuple[Pod, ...]
    namespaces: Mapping[str, Mapping[str, str]]

    def pods_on(self, node: Node) -> list[Pod]:
        return [pod for pod in self.placed if pod.spec.node_name == node.metadata.name]


Rule = Callable[[Scene, Pod, Node], list[str]]


def selects(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    if selector is None:
        return False
    if any(labels.get(key) != wanted for key, wanted in selector.match_labels.items()):
        return False
    for expression in selector.match_expressions:
        present = labels.get(expression.key)
        holds = {
            "In": present in expression.values,
            "NotIn": present not in expression.values,
            "Exists": present is not None,
            "DoesNotExist": present is None,
        }[expression.operator]
        if not holds:
            return False
    return True


# -- what nodes are ---------------------------------------------------------------------------------------------------


def tolerated(pod: Pod, taint: Taint) -> bool:
    """Tell whether some toleration of the pod covers the taint."""
    for toleration in pod.spec.tolerations:
        effect = toleration.effect in {"", taint.effect}
        key = toleration.key in {"", taint.key}
        if effect and key and (toleration.operator == "Exists" or toleration.value == taint.value):
            return True
    return False


def hard_taints_tolerated(pod: Pod, node: Node) -> bool:
    """Tell whether no taint keeps the pod off the node."""
    return all(taint.effect == "PreferNoSchedule" or tolerated(pod, taint) for taint in node.spec.taints)


def node_unschedulable(scene: Scene, pod: Pod, node: Node) -> list[str]:
    """Cordoned."""
    cordon = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
    return ["node(s) were unschedulable"] if node.spec.unschedulable and not tolerated(pod, cordon) else []


def taint_toleration(scene: Scene, pod: Pod, node: Node) -> list[str]:
    """Tainted."""
    return [] if hard_taints_tolerated(pod, node) else ["node(s) had untolerated taint(s)"]


def expression_holds(expression: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    """Tell whether a node's labels meet one expression."""
    present = labels.get(expression.key)
    match expression.operator:
        case "In":
            return present in expression.values
        case "NotIn":
            return present not in expression.values
        case "Exists":
            return present is not None
        case "DoesNotExist":
            return present is None
        case "Gt" | "Lt":
            if present is None or not present.lstrip("-").isdigit():
                return False
            bound = int(expression.values[0])
            return int(present) > bound if expression.operator == "Gt" else int(present) < bound
    raise AssertionError(expression.operator)


def term_holds(term: NodeSelectorTerm, node: Node) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    fields = all((node.metadata.name in f.values) == (f.operator == "In") for f in term.match_fields)
    return fields and all(expression_holds(e, node.metadata.labels) for e in term.match_expressions)


def affine(pod: Pod, node: Node) -> bool:
    """Tell whether node selector and required node affinity hold."""
    if any(node.metadata.labels.get(key) != wanted for key, wanted in pod.spec.node_selector.items()):
        return False
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    return required is None or any(term_holds(term, node) for term in required.node_selector_terms)


def node_affinity(scene: Scene, pod: Pod, node: Node) -> list[str]:
    """Not matched."""
    return [] if affine(pod, node) else ["node(s) didn't match Pod's node affinity/selector"]


# -- what is on nodes -------------------------------------------------------------------------------------------------


def node_ports(scene: Scene, pod: Pod, node: Node) -> list[str]:
    """Port taken."""
    used = [port for other in scene.pods_on(node) for c in other.spec.containers for port in c.ports]
    for wanted in (port for c in pod.spec.containers for port in c.ports if port.host_port):
        for held in used:
            if (wanted.host_port, wanted.protocol) == (held.host_port, held.protocol) and (
                not wanted.host_ip or not held.host_ip or wanted.host_ip == held.host_ip
            ):
                return ["node(s) didn't have free ports for the requested pod ports"]
    return []


def requests(pod: Pod) -> dict[str, int]:
    """Return what the containers of a pod request together."""
    total: dict[str, int] = {}
    for container in pod.spec.containers:
        for name, quantity in container.resources.requests.items():
            total[name] = total.get(name, 0) + (milli(quantity) if name == "cpu" else value(quantity))
    return total


def resources_fit(scene: Scene, pod: Pod, node: Node) -> list[str]:
    """Some resource is short."""
    reasons = []
    offered = node.status.allocatable
    if len(scene.pods_on(node)) + 1 > value(offered.get("pods", 0)):
        reasons.append("Too many pods")
    for name, wanted in requests(pod).items():
        whole = milli(offered.get(name, 0)) if name == "cpu" else value(offered.get(name, 0))
        used = sum(requests(other).get(name, 0) for other in scene.pods_on(node))
        if wanted > 0 and wanted > whole - used:
            reasons.append(f"Insufficient {name}")
    return reasons


# -- where other pods are ---------------------------------------------------------------------------------------------


def narrowed(selector: LabelSelector | None, own: Mapping[str, str]) -> LabelSelector | None:
    """Return a selector that also wants these labels."""
    if selector is None:
        return None
    return LabelSelector(match_labels={**selector.match_labels, **own}, match_expressions=selector.match_expressions)


def topology_spread(scene: Scene, pod: Pod, node: Node) -> list[str]:
    """Too uneven."""
    reason = "node(s) didn't match pod topology spread constraints"
    constraints = [c for c in pod.spec.topology_spread_constraints if c.when_unsatisfiable == "DoNotSchedule"]
    keys = [c.topology_key for c in constraints]
    for constraint in constraints:
        if constraint.topology_key not in node.metadata.labels:
            return [f"{reason} (missing required label)"]
        own = {key: pod.metadata.labels[key] for key in constraint.match_label_keys if key in pod.metadata.labels}
        selector = narrowed(constraint.label_selector, own)
        empty = selector is not None and not (selector.match_labels or selector.match_expressions)
        domains: dict[str, int] = {}
        for other_node in scene.nodes.values():
            labels = other_node.metadata.labels
            if not all(key in labels for key in keys):
                continue
            if constraint.node_affinity_policy != "Ignore" and not affine(pod, other_node):
                continue
            if constraint.node_taints_policy == "Honor" and not hard_taints_tolerated(pod, other_node):
                continue
            found = sum(
                1
                for other in scene.pods_on(other_node)
                if other.metadata.namespace == pod.metadata.namespace
                and other.metadata.deletion_timestamp is None
                and not empty
                and selects(selector, other.metadata.labels)
            )
            domain = labels[constraint.topology_key]
            domains[domain] = domains.get(domain, 0) + found
        least = min(domains.values(), default=0) if len(domains) >= (constraint.min_domains or 1) else 0
        here = domains.get(node.metadata.labels[constraint.topology_key], 0)
        if here + int(selects(selector, pod.metadata.labels)) - least > constraint.max_skew:
            return [reason]
    return []


def means(scene: Scene, owner: Pod, term: PodAffinityTerm, other: Pod) -> bool:
    namespace = other.metadata.namespace or ""
    if not term.namespaces and term.namespace_selector is None:
        inside = namespace == owner.metadata.namespace
    else:
        labels = scene.namespaces.get(namespace, {})
        inside = namespace in term.namespaces or selects(term.namespace_selector, labels)
    own = {key: owner.metadata.labels[key] for key in term.match_label_keys if key in owner.metadata.labels}
    narrowed = all(other.metadata.labels.get(key) == wanted for key, wanted in own.items())
    return inside and narrowed and selects(term.label_selector, other.metadata.labels)


def required_terms(pod: Pod, *, anti: bool) -> tuple[PodAffinityTerm, ...]:
    affinity = pod.spec.affinity
    if affinity is None:
        return ()
    terms = affinity.pod_anti_affinity if anti else affinity.pod_affinity
    return terms.required_during_scheduling_ignored_during_execution if terms else ()


def same_domain(one: Node, other: Node, key: str) -> bool:
    """Tell whether two nodes share a value of a label."""
    return key in one.metadata.labels and one.metadata.labels[key] == other.metadata.labels.get(key)


def inter_pod_affinity(scene: Scene, pod: Pod, node: Node) -> list[str]:
    """Wrong company."""
    located = [(other, scene.nodes[other.spec.node_name]) for other in scene.placed]
    wanted = required_terms(pod, anti=False)
    if wanted:
        friends = [(o, where) for o, where in located if all(means(scene, pod, term, o) for term in wanted)]
        labelled = all(term.topology_key in node.metadata.labels for term in wanted)
        beside = all(any(same_domain(node, where, term.topology_key) for _, where in friends) for term in wanted)
        lonely = not any(term.topology_key in where.metadata.labels for _, where in friends for term in wanted)
        first = lonely and all(means(scene, pod, term, pod) for term in wanted)
        if not labelled or not (beside or first):
            return ["node(s) didn't match pod affinity rules"]
    for term in required_terms(pod, anti=True):
        if any(means(scene, pod, term, o) and same_domain(node, where, term.topology_key) for o, where in located):
            return ["node(s) didn't match pod anti-affinity rules"]
    for other, where in located:
        for term in required_terms(other, anti=True):
            if means(scene, other, term, pod) and same_domain(node, where, term.topology_key):
                return ["node(s) didn't satisfy existing pods anti-affinity rules"]
    return []


RULES: dict[str, Rule] = {
    "NodeUnschedulable": node_unschedulable,
    "TaintToleration": taint_toleration,
    "NodeAffinity": node_affinity,
    "NodePorts": node_ports,
    "NodeResourcesFit": resources_fit,
    "PodTopologySpread": topology_spread,
    "InterPodAffinity": inter_pod_affinity,
}

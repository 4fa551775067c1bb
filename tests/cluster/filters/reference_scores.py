"""The scores again, node by node and in plain Python: what the vectors are compared with."""

import math
from fractions import Fraction

from spinney.api.affinity import Affinity, PodAffinityTerm, TopologySpreadConstraint
from spinney.api.core import Node, Pod
from spinney.api.quantity import milli, value

from .reference import (
    Scene,
    affine,
    hard_taints_tolerated,
    means,
    required_terms,
    same_domain,
    selects,
    term_holds,
    tolerated,
)

MIB = 1024 * 1024


def whole(node: Node, name: str) -> int:
    """Return what a node offers."""
    quantity = node.status.allocatable.get(name, 0)
    return milli(quantity) if name == "cpu" else value(quantity)


def asked(pod: Pod, name: str, default: int = 0) -> int:
    """Return what the containers of a pod ask for, with a default for those that do not say."""
    read = milli if name == "cpu" else value
    found = [container.resources.requests.get(name) for container in pod.spec.containers]
    return sum(default if quantity is None else read(quantity) for quantity in found)


def least_allocated(scene: Scene, pod: Pod, nodes: list[Node]) -> dict[str, int]:
    """Return the mean share of cpu and memory left, in hundredths."""
    scores = {}
    for node in nodes:
        shares = []
        for name, default in (("cpu", 100), ("memory", 200 * MIB)):
            used = sum(asked(other, name, default) for other in [*scene.pods_on(node), pod])
            shares.append(max(whole(node, name) - used, 0) * 100 // whole(node, name))
        scores[node.metadata.name] = sum(shares) // 2
    return scores


def balanced_allocation(scene: Scene, pod: Pod, nodes: list[Node]) -> dict[str, int] | None:
    """Return how much the pod evens out cpu and memory."""
    if not asked(pod, "cpu") and not asked(pod, "memory"):
        return None

    def balance(node: Node, pods: list[Pod]) -> int:
        shares = [min(sum(asked(other, name) for other in pods) / whole(node, name), 1.0) for name in ("cpu", "memory")]
        return int((1 - abs((shares[0] - shares[1]) / 2)) * 100)

    return {
        node.metadata.name: 50
        + (50 + balance(node, [*scene.pods_on(node), pod]) - balance(node, scene.pods_on(node))) // 2
        for node in nodes
    }


def scaled(raw: dict[str, int], *, reverse: bool = False) -> dict[str, int]:
    """Scale so that the highest is 100, or 0."""
    highest = max(raw.values(), default=0)
    if not highest:
        return dict.fromkeys(raw, 100 if reverse else 0)
    return {name: 100 - 100 * v // highest if reverse else 100 * v // highest for name, v in raw.items()}


def taint_toleration(scene: Scene, pod: Pod, nodes: list[Node]) -> dict[str, int]:
    """Return fewer soft taints first."""
    soft = {n.metadata.name: [t for t in n.spec.taints if t.effect == "PreferNoSchedule"] for n in nodes}
    return scaled({name: sum(not tolerated(pod, t) for t in taints) for name, taints in soft.items()}, reverse=True)


def node_affinity(scene: Scene, pod: Pod, nodes: list[Node]) -> dict[str, int] | None:
    """Return the preferred terms matched."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    terms = affinity.preferred_during_scheduling_ignored_during_execution if affinity else ()
    if not terms:
        return None
    return scaled({n.metadata.name: sum(t.weight for t in terms if term_holds(t.preference, n)) for n in nodes})


def preferred_terms(owner: Pod) -> list[tuple[int, PodAffinityTerm]]:
    """Return the preferred terms of a pod with signed weights."""
    found: list[tuple[int, PodAffinityTerm]] = []
    affinity = owner.spec.affinity or Affinity()
    for sign, terms in ((1, affinity.pod_affinity), (-1, affinity.pod_anti_affinity)):
        preferred = terms.preferred_during_scheduling_ignored_during_execution if terms else ()
        found += [(sign * weighted.weight, weighted.pod_affinity_term) for weighted in preferred]
    return found


def inter_pod_affinity(scene: Scene, pod: Pod, nodes: list[Node]) -> dict[str, int] | None:
    """Return liking, from both sides."""
    raw = dict.fromkeys((node.metadata.name for node in nodes), 0)
    concerned = False
    for other in scene.placed:
        where = scene.nodes[other.spec.node_name]
        pairs = [(weight, term, pod, other) for weight, term in preferred_terms(pod)]
        pairs += [(weight, term, other, pod) for weight, term in preferred_terms(other)]
        pairs += [(1, term, other, pod) for term in required_terms(other, anti=False)]
        for weight, term, owner, meant in pairs:
            if not means(scene, owner, term, meant) or term.topology_key not in where.metadata.labels:
                continue
            concerned = True
            for node in nodes:
                if same_domain(node, where, term.topology_key):
                    raw[node.metadata.name] += weight
    if not concerned or not raw:
        return None
    low, high = min(raw.values()), max(raw.values())
    return {name: int(100 * ((v - low) / (high - low))) if high > low else 0 for name, v in raw.items()}


def spread_with(scene: Scene, pod: Pod, constraint: TopologySpreadConstraint, node: Node) -> int:
    """Return how many pods on a node a constraint counts."""
    own = {key: pod.metadata.labels[key] for key in constraint.match_label_keys if key in pod.metadata.labels}
    selector = constraint.label_selector
    if selector is not None and not (selector.match_labels or selector.match_expressions or own):
        return 0
    return sum(
        other.metadata.namespace == pod.metadata.namespace
        and all(other.metadata.labels.get(key) == wanted for key, wanted in own.items())
        and selects(selector, other.metadata.labels)
        for other in scene.pods_on(node)
    )


def topology_spread(scene: Scene, pod: Pod, nodes: list[Node]) -> dict[str, int] | None:
    """Return emptier domains first."""
    constraints = [c for c in pod.spec.topology_spread_constraints if c.when_unsatisfiable == "ScheduleAnyway"]
    if not constraints:
        return None

    def labelled(node: Node) -> bool:
        return all(constraint.topology_key in node.metadata.labels for constraint in constraints)

    scored = [node for node in nodes if labelled(node)]
    raw: dict[str, float] = dict.fromkeys((node.metadata.name for node in scored), 0.0)
    for constraint in constraints:
        key = constraint.topology_key
        hostname = key == "kubernetes.io/hostname"
        size = len(scored) if hostname else len({node.metadata.labels[key] for node in scored})
        for node in scored:
            around = [node]
            if not hostname:
                around = [
                    other
                    for other in scene.nodes.values()
                    if labelled(other)
                    and same_domain(node, other, key)
                    and (constraint.node_affinity_policy == "Ignore" or affine(pod, other))
                    and (constraint.node_taints_policy != "Honor" or hard_taints_tolerated(pod, other))
                ]
            count = sum(spread_with(scene, pod, constraint, other) for other in around)
            raw[node.metadata.name] += count * math.log(size + 2) + (constraint.max_skew - 1)
    rounded = {name: math.floor(v + 0.5) for name, v in raw.items()}
    low, high = min(rounded.values(), default=0), max(rounded.values(), default=0)
    scores = dict.fromkeys((node.metadata.name for node in nodes), 0)
    return scores | {name: 100 * (high + low - v) // high if high else 100 for name, v in rounded.items()}


def image_locality(scene: Scene, pod: Pod, nodes: list[Node]) -> dict[str, int]:
    """Return how much of the images is there."""
    scores = {}
    for node in nodes:
        present = 0
        for container in pod.spec.containers:
            having = [
                n for n in scene.nodes.values() if any(container.image in (i.names or ()) for i in n.status.images)
            ]
            if node in having:
                size = next(i.size_bytes for i in node.status.images if container.image in (i.names or ()))
                present += int(Fraction(size * len(having), len(scene.nodes)))
        most = 1000 * MIB * len(pod.spec.containers)
        scores[node.metadata.name] = 100 * (min(max(present, 23 * MIB), most) - 23 * MIB) // (most - 23 * MIB)
    return scores

"""Random small clusters, as the JSON an API server would take: nodes, namespaces, placed pods and pending ones.

Vocabularies are small on purpose, so that constraints meet: few labels, few taints, few ports.
"""

from dataclasses import dataclass, field
from random import Random

from spinney.api.core import Node, Pod
from spinney.api.struct import JSON, convert
from spinney.cluster.filters import ClusterView
from spinney.cluster.requests import pod_requests
from spinney.cluster.table import Holding, NodeTable

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
KEYS = (ZONE, HOSTNAME, "rack")
NAMESPACES = {"blue": {"team": "a"}, "green": {"team": "b"}}
TAINTS = (
    {"key": "gpu", "value": "yes", "effect": "NoSchedule"},
    {"key": "drain", "value": "now", "effect": "NoExecute"},
    {"key": "old", "value": "", "effect": "PreferNoSchedule"},
)
TOLERATIONS = (
    {"key": "gpu", "operator": "Exists"},
    {"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"},
    {"operator": "Exists", "effect": "NoExecute"},
    {"key": "drain", "operator": "Equal", "value": "now"},
    {"operator": "Exists"},
    {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},
)


@dataclass
class World:
    """A cluster in JSON. Mutable while it is being made."""

    nodes: list[JSON] = field(default_factory=list)
    placed: list[JSON] = field(default_factory=list)
    pending: list[JSON] = field(default_factory=list)


def a_world(random: Random, *, nodes: int = 6, placed: int = 8, pending: int = 3) -> World:
    """Return a random cluster."""
    world = World(nodes=[a_node(random, index) for index in range(random.randint(1, nodes))])
    names = [node["metadata"]["name"] for node in world.nodes]
    for index in range(random.randint(0, placed)):
        pod = a_pod(random, f"placed-{index}")
        pod["spec"]["nodeName"] = random.choice(names)
        world.placed.append(pod)
    world.pending = [a_pod(random, f"pending-{index}", names) for index in range(random.randint(1, pending))]
    return world


def a_node(random: Random, index: int) -> JSON:
    """Return a node with some of the labels, taints and resources that constraints speak of."""
    labels = {"tier": random.choice(["1", "3", "5", "x"]), "disk": random.choice(["ssd", "hdd"])}
    if random.random() < 0.9:
        labels[HOSTNAME] = f"node-{index}"
    if random.random() < 0.85:
        labels[ZONE] = random.choice(["east", "west", "north"])
    if random.random() < 0.6:
        labels["rack"] = random.choice(["r1", "r2"])
    resources = {
        "cpu": random.choice(["1", "4", "8"]),
        "memory": random.choice(["2Gi", "8Gi", "8Gi"]),
        "pods": random.choice(["3", "110", "110", "110"]),
        "ephemeral-storage": "10Gi",
    }
    if random.random() < 0.5:
        resources["nvidia.com/gpu"] = random.choice(["1", "8"])
    spec: JSON = {}
    if random.random() < 0.15:
        spec["unschedulable"] = True
    taints = [dict(taint) for taint in TAINTS if random.random() < 0.15]
    if taints:
        spec["taints"] = taints
    return {
        "metadata": {"name": f"node-{index}", "labels": labels},
        "spec": spec,
        "status": {
            "allocatable": resources,
            "capacity": resources,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def a_pod(random: Random, name: str, nodes: list[str] | None = None) -> JSON:
    """Return a pod; with ``nodes`` it may also ask for a node by name."""
    requests = {}
    if random.random() < 0.7:
        requests["cpu"] = random.choice(["100m", "500m", "2", "3"])
    if random.random() < 0.4:
        requests["memory"] = random.choice(["128Mi", "2Gi"])
    container: JSON = {"name": "main", "image": "registry.example/app:1", "resources": {"requests": requests}}
    if random.random() < 0.2:
        gpus = random.choice(["1", "4"])
        container["resources"] = {"requests": {**requests, "nvidia.com/gpu": gpus}, "limits": {"nvidia.com/gpu": gpus}}
    if random.random() < 0.25:
        container["ports"] = [a_port(random)]
    spec: JSON = {"containers": [container]}
    if random.random() < 0.4:
        spec["tolerations"] = random.sample(TOLERATIONS, random.randint(1, 2))
    if random.random() < 0.2:
        spec["nodeSelector"] = {"disk": "ssd"}
    affinity = {}
    if random.random() < 0.3:
        affinity["nodeAffinity"] = a_node_affinity(random, nodes)
    if random.random() < 0.3:
        affinity["podAffinity"] = a_pod_affinity(random)
    if random.random() < 0.3:
        affinity["podAntiAffinity"] = a_pod_affinity(random)
    if affinity:
        spec["affinity"] = affinity
    if random.random() < 0.4:
        constraints = [a_spread(random) for _ in range(random.randint(1, 2))]
        unique = {(c["topologyKey"], c["whenUnsatisfiable"]): c for c in constraints}
        spec["topologySpreadConstraints"] = list(unique.values())
    labels = {"app": random.choice(["a", "b", "c"])}
    if random.random() < 0.5:
        labels["track"] = random.choice(["x", "y"])
    return {
        "metadata": {"name": name, "namespace": random.choice(sorted(NAMESPACES)), "labels": labels},
        "spec": spec,
    }


def a_port(random: Random) -> JSON:
    """Return a host port, on all addresses or on one."""
    number = random.choice([8080, 9090])
    port: JSON = {"containerPort": number, "hostPort": number, "protocol": random.choice(["TCP", "UDP"])}
    if random.random() < 0.5:
        port["hostIP"] = random.choice(["127.0.0.1", "10.0.0.1"])
    return port


def a_node_affinity(random: Random, nodes: list[str] | None) -> JSON:
    """Return required and preferred node affinity."""
    expressions = (
        {"key": "disk", "operator": "In", "values": ["ssd"]},
        {"key": "disk", "operator": "NotIn", "values": ["hdd", "tape"]},
        {"key": "rack", "operator": "Exists"},
        {"key": "rack", "operator": "DoesNotExist"},
        {"key": "tier", "operator": "Gt", "values": ["2"]},
        {"key": "tier", "operator": "Lt", "values": ["4"]},
        {"key": ZONE, "operator": "NotIn", "values": ["east"]},
    )
    terms: list[JSON] = []
    for _ in range(random.randint(1, 2)):
        term: JSON = {"matchExpressions": random.sample(expressions, random.randint(1, 2))}
        if nodes and random.random() < 0.3:
            name = random.choice([*nodes, "node-of-nowhere"])
            operator = random.choice(["In", "NotIn"])
            term["matchFields"] = [{"key": "metadata.name", "operator": operator, "values": [name]}]
        terms.append(term)
    found: JSON = {}
    if random.random() < 0.7:
        found["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if random.random() < 0.5:
        found["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": random.randint(1, 100), "preference": {"matchExpressions": [random.choice(expressions)]}}
        ]
    return found


def a_selector(random: Random) -> JSON:
    """Return a selector over pod labels."""
    if random.random() < 0.5:
        return {"matchLabels": {"app": random.choice(["a", "b", "c"])}}
    if random.random() < 0.1:
        return {}
    expressions = (
        {"key": "app", "operator": "In", "values": ["a", "b"]},
        {"key": "track", "operator": "Exists"},
        {"key": "track", "operator": "NotIn", "values": ["x"]},
        {"key": "track", "operator": "DoesNotExist"},
    )
    return {"matchExpressions": random.sample(expressions, random.randint(1, 2))}


def a_pod_affinity(random: Random) -> JSON:
    """Return required and preferred terms about other pods."""
    found: JSON = {}
    if random.random() < 0.7:
        found["requiredDuringSchedulingIgnoredDuringExecution"] = [a_term(random) for _ in range(random.randint(1, 2))]
    if random.random() < 0.4:
        found["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": random.randint(1, 100), "podAffinityTerm": a_term(random)}
        ]
    return found


def a_term(random: Random) -> JSON:
    """Return one pod affinity term."""
    term: JSON = {"labelSelector": a_selector(random), "topologyKey": random.choice(KEYS)}
    kind = random.random()
    if kind < 0.2:
        term["namespaces"] = random.sample(sorted(NAMESPACES), random.randint(1, 2))
    elif kind < 0.35:
        term["namespaceSelector"] = {"matchLabels": {"team": random.choice(["a", "b"])}}
    elif kind < 0.45:
        term["namespaceSelector"] = {}
    if random.random() < 0.3 and "track" not in str(term["labelSelector"]):  # the API refuses a key in both
        term["matchLabelKeys"] = ["track"]
    return term


def a_spread(random: Random) -> JSON:
    """Return one topology spread constraint."""
    constraint: JSON = {
        "maxSkew": random.choice([1, 1, 2]),
        "topologyKey": random.choice(KEYS),
        "whenUnsatisfiable": random.choice(["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"]),
        "labelSelector": a_selector(random),
    }
    if constraint["whenUnsatisfiable"] == "DoNotSchedule" and random.random() < 0.3:
        constraint["minDomains"] = random.choice([1, 2, 4])
    if random.random() < 0.3:
        constraint["nodeAffinityPolicy"] = random.choice(["Honor", "Ignore"])
    if random.random() < 0.3:
        constraint["nodeTaintsPolicy"] = random.choice(["Honor", "Ignore"])
    if random.random() < 0.3 and "track" not in str(constraint["labelSelector"]):
        constraint["matchLabelKeys"] = ["track"]
    return constraint


def a_view(nodes: list[Node], placed: list[Pod]) -> ClusterView:
    view = ClusterView(NodeTable(), namespaces=NAMESPACES)
    for node in nodes:
        view.table.put(node)
    for pod in placed:
        place(view, pod)
    return view


def place(view: ClusterView, pod: Pod) -> None:
    """Put a pod on its node, in the ledger and among the placed pods."""
    row = view.table.row(pod.spec.node_name)
    view.table.add(row, Holding.ACTIVE, pod_requests(pod, view.table.axis))
    view.pods.place(pod, row)


def nodes_of(world: World) -> list[Node]:
    return [convert(Node, node) for node in world.nodes]


def pods_of(pods: list[JSON]) -> list[Pod]:
    return [convert(Pod, pod) for pod in pods]

"""Ready-made simulated clusters: GPU nodes in racks and blocks, and the topology that names those levels."""

import re

import msgspec

from spinney.api.struct import JSON
from spinney.nodes import ClusterSpec, NodeGroup, NodeSpec, PodTimes, TopologyLevel

BLOCK = "topology.kubernetes.io/block"
RACK = "topology.kubernetes.io/rack"
HOST = "kubernetes.io/hostname"

TOPOLOGY = "gpu-topology"
"""The name of the ClusterTopologyBinding that the shapes below come with."""

MOST_NODES = 50_000
MOST_GPUS = 1_000
"""On a node: pictures draw every one."""
_SHAPE = re.compile(r"(\d+)x(\d+)")


class InvalidShape(ValueError):
    """A text that describes no cluster."""


def parse_shape(text: str) -> tuple[int, int]:
    """Return nodes and GPUs per node of a text such as ``32x8``; raises :class:`InvalidShape`."""
    match = _SHAPE.fullmatch(text.strip())
    if match is None or int(match[1]) < 1:
        raise InvalidShape(f"{text!r} is not NODESxGPUS, such as 32x8 for 32 nodes of 8 GPUs each")
    if int(match[1]) > MOST_NODES:
        raise InvalidShape(f"{text!r}: at most {MOST_NODES} nodes can be simulated; Kubernetes itself stops at 5000")
    if int(match[2]) > MOST_GPUS:
        raise InvalidShape(f"{text!r}: at most {MOST_GPUS} GPUs can be simulated on a node")
    return int(match[1]), int(match[2])


def gpu_cluster(nodes: int, gpus: int, *, rack: int = 4, block: int = 16, pods: PodTimes | None = None) -> ClusterSpec:
    """Return ``nodes`` nodes of ``gpus`` GPUs, ``rack`` nodes to a rack and ``block`` nodes to a block."""
    capacity: dict[str, str | int | float] = {"cpu": 96, "memory": "1Ti", "pods": 110}
    if gpus:
        capacity["nvidia.com/gpu"] = gpus
    group = NodeGroup(
        name="gpu-{index:03d}" if gpus else "node-{index:03d}",
        count=nodes,
        capacity=capacity,
        topology=(TopologyLevel(label=BLOCK, size=block), TopologyLevel(label=RACK, size=rack)),
    )
    return ClusterSpec(nodes=(group,), pods=pods or PodTimes())


def node_manifest(node: NodeSpec) -> JSON:
    """Return a node as it would be written by hand; one that says nothing of its conditions counts as ready."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node.name, "labels": dict(node.labels)},
        "spec": {"taints": [msgspec.to_builtins(taint) for taint in node.taints]},
        "status": {"capacity": dict(node.capacity), "allocatable": dict(node.allocatable)},
    }


def queue(name: str, gpus: float, *, parent: str | None = None, limit: float = -1, weight: float = 1) -> JSON:
    """Return a Queue with a quota of GPUs; cpu and memory are unlimited."""
    everything = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    gpu = {"quota": gpus, "limit": limit, "overQuotaWeight": weight}
    spec: JSON = {"resources": {"gpu": gpu, "cpu": everything, "memory": everything}}
    return {"metadata": {"name": name}, "spec": spec | ({"parentQueue": parent} if parent else {})}


def topology_binding(name: str = TOPOLOGY) -> JSON:
    """Return the ClusterTopologyBinding for the labels of :func:`gpu_cluster`, broad to narrow."""
    levels = [
        {"domain": "block", "key": BLOCK},
        {"domain": "rack", "key": RACK},
        {"domain": "host", "key": HOST},
    ]
    return {"metadata": {"name": name}, "spec": {"levels": levels}}

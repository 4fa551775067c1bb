"""The nodes: eight GPUs each, sixteen to a rack, eight racks to a block."""

from benchmarks.load import cluster
from spinney.api.struct import JSON

GPUS = 8
RACK, BLOCK, HOST = "topology.bench/rack", "topology.bench/block", "kubernetes.io/hostname"
NODES_OF_A_RACK, NODES_OF_A_BLOCK = 16, 128


def a_node(number: int) -> JSON:
    """Return a node that knows its rack and its block."""
    node = cluster.a_node(number)
    node["metadata"]["labels"] |= {
        RACK: f"rack-{number // NODES_OF_A_RACK:04d}",
        BLOCK: f"block-{number // NODES_OF_A_BLOCK:04d}",
    }
    return node

"""Kinds of nodes that could be added to a cluster: the node groups of its autoscaler, as a file lists them."""

from dataclasses import dataclass

import msgspec

from spinney.api.core import Node
from spinney.api.struct import convert
from spinney.cluster.devices import gpus_on
from spinney.nodes import ClusterSpec, NodeGroup
from spinney.sim.embedded.shapes import node_manifest
from spinney.sim.snapshots.files import completed


@dataclass(frozen=True)
class AddableNodes:
    """One kind: what it is called, what a node of it is like, and how many could be added."""

    kind: str
    like: Node
    most: int

    @property
    def gpus(self) -> int:
        return gpus_on(self.like)


def addable(described: ClusterSpec) -> tuple[AddableNodes, ...]:
    """Return the groups of a cluster description as kinds of nodes, those with fewest GPUs first."""
    kinds = [_kind(group) for group in described.nodes if group.count]
    return tuple(sorted(kinds, key=lambda each: (each.gpus, each.kind)))


def _kind(group: NodeGroup) -> AddableNodes:
    """Return a group as a kind; it is called like the group, without the number."""
    kind, first = group.name.partition("{")[0].rstrip("-."), next(iter(group.nodes()))
    like = completed(node_manifest(msgspec.structs.replace(first, name=kind)))
    return AddableNodes(kind, convert(Node, like), group.count)

"""Simulated nodes: a client of any API server, embedded or real, that plays the kubelet's part.

A :class:`Fleet` registers the nodes of a :class:`ClusterSpec`, keeps them alive and runs the pods bound to them, as a
kubelet would where a scheduler or an operator can tell: it refuses what does not fit, runs init containers in order,
evaluates start-up conditions, and takes its time to stop.
"""

from spinney.nodes.fleet import Fleet, UnknownNode
from spinney.nodes.node import Health
from spinney.nodes.spec import (
    ClusterSpec,
    Heartbeats,
    InvalidClusterSpec,
    NodeGroup,
    NodeSpec,
    PodTimes,
    TopologyLevel,
)

__all__ = [
    "ClusterSpec",
    "Fleet",
    "Health",
    "Heartbeats",
    "InvalidClusterSpec",
    "NodeGroup",
    "NodeSpec",
    "PodTimes",
    "TopologyLevel",
    "UnknownNode",
]

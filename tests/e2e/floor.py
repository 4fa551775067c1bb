"""The machine hall of Grove's scenarios: nodes that hold one 80Mi pod each, numbered into racks, blocks and zones.

Node ``n`` is in zone ``n/28``, block ``n/20`` and rack ``n/7``: 28 nodes are one zone, blocks of 20 and 8, four racks.
Rack 2 reaches over the edge of a block, as it does in Grove's cluster.
"""

from spinney.api.struct import JSON
from spinney.nodes import ClusterSpec, Heartbeats, NodeGroup, PodTimes
from spinney.nodes.spec import NodeTaint

ROLE = "node_role.e2e.grove.nvidia.com"
ZONE = "kubernetes.io/zone"
BLOCK = "kubernetes.io/block"
RACK = "kubernetes.io/rack"
HOST = "kubernetes.io/hostname"

TOPOLOGY = "grove-topology"

QUICK = PodTimes(start="500ms", ready="1s", stop="500ms")
INSTANT = PodTimes(start="20ms", ready="50ms", stop="20ms")


def node_name(number: int) -> str:
    """Return the name of a node; names sort as numbers do."""
    return f"kwok-node-{number:02d}"


def a_node(number: int) -> NodeGroup:
    """Return node ``number`` of the hall."""
    return NodeGroup(
        name=node_name(number),
        capacity={"cpu": 4, "memory": "150Mi", "pods": 110},
        labels={
            ROLE: "agent",
            ZONE: f"zone-{number // 28}",
            BLOCK: f"block-{number // 20}",
            RACK: f"rack-{number // 7}",
        },
        taints=(NodeTaint(key=ROLE, value="agent", effect="NoSchedule"),),
    )


def a_floor(nodes: int, *, times: PodTimes = QUICK) -> ClusterSpec:
    """Return a hall of that many nodes, whose heartbeats are left out: nothing here depends on them."""
    heartbeats = Heartbeats(lease="0s", status="0s")
    return ClusterSpec(nodes=tuple(map(a_node, range(nodes))), pods=times, heartbeats=heartbeats)


def a_binding(name: str = TOPOLOGY, **levels: str) -> JSON:
    """Return a ClusterTopologyBinding; by default of zone, block, rack and host."""
    found = levels or {"zone": ZONE, "block": BLOCK, "rack": RACK, "host": HOST}
    return {
        "metadata": {"name": name},
        "spec": {"levels": [{"domain": domain, "key": key} for domain, key in found.items()]},
    }

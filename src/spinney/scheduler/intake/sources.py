"""The kinds the session scheduler reads beside pods and nodes, each only where the API server serves it.

The start of the process waits for this module, and loads the rest while it reads them.
"""

from collections.abc import Mapping
from typing import Any, Final

from spinney.api import kai, volcano
from spinney.api.core import NODE, POD, Node, Pod
from spinney.api.podgang import POD_GANG, PodGang
from spinney.api.resource import Resource
from spinney.api.scheduling_kinds import ABOUT_GROUPS, CONSTRAINTS, INDISPENSABLE
from spinney.api.topology_binding import CLUSTER_TOPOLOGY_BINDING, ClusterTopologyBinding

COMPONENT: Final = "spinney-scheduler"
"""As whom the scheduler writes, and the name of its lease."""

OPTIONAL_KINDS: Final[Mapping[Resource, type[Any]]] = {
    **ABOUT_GROUPS,
    **CONSTRAINTS,
    POD_GANG: PodGang,
    CLUSTER_TOPOLOGY_BINDING: ClusterTopologyBinding,
    kai.QUEUE: kai.Queue,
    kai.POD_GROUP: kai.PodGroup,
    kai.TOPOLOGY: kai.Topology,
    volcano.POD_GROUP: volcano.PodGroup,
}


def is_indispensable(resource: Resource) -> bool:
    """Tell whether nothing may be decided before a kind was read; without queues nobody would keep to a quota."""
    return resource in INDISPENSABLE or resource in {POD, NODE, kai.QUEUE}


def type_of(resource: Resource) -> type[Any]:
    """Return what objects of a kind that the scheduler reads are decoded as."""
    return {POD: Pod, NODE: Node}.get(resource) or OPTIONAL_KINDS[resource]

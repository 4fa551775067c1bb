"""NodePorts: no two pods of a node hold the same host port on the same address."""

from typing import Final

import numpy as np

from spinney.cluster.filters.candidate import Candidate
from spinney.cluster.filters.placed_pods import ANY_ADDRESS
from spinney.cluster.filters.verdict import FilterRule, Refusal
from spinney.cluster.filters.view import ClusterView

NAME: Final = "NodePorts"
REASON: Final = "node(s) didn't have free ports for the requested pod ports"


def refuse(view: ClusterView, pod: Candidate) -> tuple[Refusal, ...]:
    """Refuse nodes where a pod already holds a port that this one wants."""
    if not pod.host_ports:
        return ()
    capacity = view.table.capacity
    taken = np.zeros(capacity, dtype=np.bool_)
    for port in pod.host_ports:
        wanted = port.host_ip or ANY_ADDRESS
        for address, users in view.pods.port_users(port.protocol or "TCP", port.host_port, capacity).items():
            # The wildcard address overlaps with every other.
            if ANY_ADDRESS in {wanted, address} or wanted == address:
                taken |= users > 0
    return (Refusal.evictable(NAME, REASON, view.table.alive & taken),)


FILTER: Final = FilterRule(NAME, refuse)

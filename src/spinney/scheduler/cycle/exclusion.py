"""Pods of one gang that keep each other away: those that hold one host port, or avoid each other's labels.

Filters ask about one pod at a time, and each of these has room as long as the others have no node.
"""

from collections.abc import Hashable, Iterator, Sequence

import msgspec
import numpy as np

from spinney.api.labels import HOSTNAME
from spinney.cluster.filters import Candidate, ClusterView
from spinney.cluster.table import Mask
from spinney.explain.amounts import counted


class Exclusion(msgspec.Struct, frozen=True):
    """Pods of a gang of which no two may share a node, or a domain of a label."""

    pods: int
    places: int
    """How many nodes or domains can take one of them."""
    rule: str
    level: str

    @property
    def beyond(self) -> int:
        """Return for how many of them there is no place."""
        return max(self.pods - self.places, 0)

    def __str__(self) -> str:
        places = f"{self.places} can take one" if self.places else "none can take one"
        return f"{counted(self.pods, 'pod')} of it {self.rule}, so each needs a {self.level} of its own; {places}"


def tightest_exclusion(view: ClusterView, pods: Sequence[tuple[Candidate, Mask]]) -> Exclusion | None:
    """Return the rule for which most pods lack a place, of ``pods`` with the nodes that can take each."""
    sharing: dict[Hashable, tuple[str, str, list[Mask]]] = {}
    for candidate, nodes in pods:
        for key, rule, label in _rules(view, candidate):
            sharing.setdefault(key, (rule, label, []))[2].append(nodes)
    found = [
        Exclusion(len(masks), places, rule, "node" if label == HOSTNAME else label.rpartition("/")[2])
        for rule, label, masks in sharing.values()
        if len(masks) > 1 and (places := _places(view, np.logical_or.reduce(masks), label)) is not None
    ]
    return max(found, key=lambda each: (each.beyond, each.pods), default=None)


def _rules(view: ClusterView, pod: Candidate) -> Iterator[tuple[Hashable, str, str]]:
    """Yield what keeps pods like this one apart: what tells the rule from others, its words, and its label."""
    for port in pod.host_ports:
        yield (port.host_ip, port.protocol, port.host_port), f"use host port {port.host_port}", HOSTNAME
    for rule in pod.required_anti_affinity:
        if rule.matches(pod.namespace, view.namespaces.get(pod.namespace, {}), pod.labels):
            yield rule, "avoid each other by their anti-affinity", rule.topology_key


def _places(view: ClusterView, nodes: Mask, label: str) -> int | None:
    """Return how many nodes, or domains of a label, these are; ``None`` where nodes without the label take any."""
    if label == HOSTNAME:
        return int(nodes.sum())
    domains = view.domains(label).of[nodes]
    return None if (domains < 0).any() else len(np.unique(domains))

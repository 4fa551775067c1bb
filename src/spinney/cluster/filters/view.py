"""What filters and scores look at: the nodes, the pods on them, and the objects constraints refer to."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec
import numpy as np
import numpy.typing as npt

from spinney.cluster.filters.carried_rules import RulesAbout
from spinney.cluster.filters.placed_pods import PlacedPods
from spinney.cluster.filters.pod_selectors import Labels
from spinney.cluster.filters.static_masks import StaticMasks
from spinney.cluster.filters.storage import Storage
from spinney.cluster.table import Mask, NodeTable


@dataclass(slots=True)
class ClusterView:
    """The cluster as one scheduling decision sees it. The parts are mutable; the view itself only holds them."""

    table: NodeTable
    pods: PlacedPods = field(default_factory=PlacedPods)
    namespaces: Mapping[str, Labels] = field(default_factory=dict)
    """Labels of every namespace, by name."""
    storage: Storage = field(default_factory=Storage)
    static: StaticMasks = field(default_factory=StaticMasks)

    def fork(self) -> "ClusterView":
        """Return a view to try placements on: nodes and pods are copied, the rest is shared."""
        return ClusterView(self.table.fork(), self.pods.fork(), self.namespaces, self.storage, self.static)

    def have_rules_about(self, namespace: str, labels: Labels) -> bool:
        """Tell whether a rule of a placed pod means a pod like this."""
        return self.pods.have_rules_about(namespace, self.namespaces.get(namespace, {}), labels)

    def rules_about(self, namespace: str, labels: Labels) -> RulesAbout | None:
        """Return what the rules of placed pods that mean a pod like this come to; ``None`` if there are none."""
        own = self.namespaces.get(namespace, {})
        return self.pods.rules_about(namespace, own, labels, self.table.capacity)

    def domains(self, key: str) -> "LabelDomains":
        """Return the topology domains that the label ``key`` divides the nodes into."""
        return LabelDomains(self.table.labels.column(key), len(self.table.labels.values(key)))


class LabelDomains(msgspec.Struct, frozen=True):
    """Nodes by value of a label: ``of[node]`` is the number of the domain, -1 for a node without the label."""

    of: npt.NDArray[np.int32]
    size: int

    @property
    def labelled(self) -> Mask:
        """Return the nodes that are in some domain."""
        return self.of >= 0

    def sums(self, counts: npt.NDArray[np.int64], nodes: Mask) -> npt.NDArray[np.int64]:
        """Return ``counts[node]`` summed over ``nodes`` by domain, ``[domain + 1]``; the last entry is zero."""
        chosen = nodes & self.labelled
        sums = np.bincount(self.of[chosen], weights=counts[chosen], minlength=self.size + 1)
        return sums.astype(np.int64)

    def spread(self, by_domain: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the value of each node's domain, ``[node]``; a node in no domain gets the last entry, zero."""
        return by_domain[self.of]

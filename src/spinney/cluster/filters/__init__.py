"""Filters with kube-scheduler's meaning, as masks over the node table.

One module per filter, named for the word in its message. :class:`FilterFramework` runs them over a :class:`ClusterView`
(nodes, placed pods, namespaces, storage) and returns the nodes that pass with every refusal counted per node.
"""

from spinney.cluster.filters.candidate import Candidate
from spinney.cluster.filters.framework import KUBE_FILTERS, SESSION_FILTERS, FilterFramework
from spinney.cluster.filters.placed_pods import PlacedPods
from spinney.cluster.filters.static_masks import StaticMasks
from spinney.cluster.filters.storage import Storage
from spinney.cluster.filters.verdict import FilterResult, FilterRule, Refusal, Restriction
from spinney.cluster.filters.view import ClusterView

__all__ = [
    "KUBE_FILTERS",
    "SESSION_FILTERS",
    "Candidate",
    "ClusterView",
    "FilterFramework",
    "FilterResult",
    "FilterRule",
    "PlacedPods",
    "Refusal",
    "Restriction",
    "StaticMasks",
    "Storage",
]

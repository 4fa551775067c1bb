"""Pods that refuse to share a node with their own kind.

Required anti-affinity by host name is how replicas are kept apart. Such pods look at other pods, but what one of them
changes for the rest of its kind is just its own node: so arithmetic may count one per node, and many can be placed in
one pass, one on each of the best nodes.
"""

from functools import lru_cache

from spinney.api.affinity import PodAffinityTerm
from spinney.api.labels import HOSTNAME
from spinney.cluster.classes import RequestClass
from spinney.cluster.filters.pod_selectors import AffinityRule


@lru_cache(maxsize=4096)
def is_one_per_node(request: RequestClass) -> bool:
    """Tell whether no two pods of a class may be on one node, as far as nodes have names in their labels."""
    return any(term.topology_key == HOSTNAME and _means_own(request, term) for term in _anti_affinity(request))


@lru_cache(maxsize=4096)
def is_only_apart(request: RequestClass) -> bool:
    """Tell whether a placed pod changes for others of its class only whether they may join it, which they may not."""
    constraints = request.constraints
    affinity = constraints.affinity
    if not is_one_per_node(request) or affinity is None or affinity.pod_affinity is not None:
        return False
    if constraints.host_ports or constraints.topology_spread or constraints.volumes or constraints.claims:
        return False
    anti_affinity = affinity.pod_anti_affinity
    if request.share is not None or anti_affinity is None:
        return False
    if anti_affinity.preferred_during_scheduling_ignored_during_execution:
        return False
    terms = _anti_affinity(request)
    return all(term.topology_key == HOSTNAME and term.namespace_selector is None for term in terms)


def _anti_affinity(request: RequestClass) -> tuple[PodAffinityTerm, ...]:
    affinity = request.constraints.affinity
    if affinity is None or affinity.pod_anti_affinity is None:
        return ()
    return affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution


def _means_own(request: RequestClass, term: PodAffinityTerm) -> bool:
    namespace, labels = request.constraints.namespace, request.constraints.labels
    return AffinityRule.of(term, namespace, labels).matches(namespace, {}, labels)

"""InterPodAffinity: pods that must, or must not, share a topology domain with others.

Three rules, in this order: the pod's own affinity (some pod that all its terms mean is in the node's domain), its own
anti-affinity (no pod a term means is there), and the anti-affinity of the pods already placed (none of them forbids
this one). A pod that is the first of a group with affinity to itself may go wherever the node has the labels.
"""

from typing import Final

import numpy as np

from spinney.cluster.filters.candidate import Candidate
from spinney.cluster.filters.count_vectors import Counts
from spinney.cluster.filters.pod_selectors import PodSelector
from spinney.cluster.filters.verdict import FilterRule, Refusal
from spinney.cluster.filters.view import ClusterView
from spinney.cluster.table import Mask

NAME: Final = "InterPodAffinity"
AFFINITY: Final = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY: Final = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI_AFFINITY: Final = "node(s) didn't satisfy existing pods anti-affinity rules"


def refuse(view: ClusterView, pod: Candidate) -> tuple[Refusal, ...]:
    """Refuse nodes that break a required affinity or anti-affinity, of this pod or of one already placed."""
    refusals = []
    open_nodes = view.table.alive.copy()
    if pod.required_affinity:
        apart = open_nodes & ~_together(view, pod)
        refusals.append(Refusal.final(NAME, AFFINITY, apart))
        open_nodes &= ~apart
    if pod.required_anti_affinity:
        near = open_nodes & _near_avoided(view, pod)
        refusals.append(Refusal.evictable(NAME, ANTI_AFFINITY, near))
        open_nodes &= ~near
    forbidden = _forbidden(view, pod)
    if forbidden is not None:
        refusals.append(Refusal.evictable(NAME, EXISTING_ANTI_AFFINITY, open_nodes & forbidden))
    return tuple(refusals)


def _together(view: ClusterView, pod: Candidate) -> Mask:
    rules = pod.required_affinity
    companions = PodSelector(tuple(rule.term(view.namespaces) for rule in rules))
    counts = view.pods.counts(companions, view.table.capacity)
    labelled = view.table.alive.copy()
    beside = view.table.alive.copy()
    anywhere = False
    for rule in rules:
        domains = view.domains(rule.topology_key)
        labelled &= domains.labelled
        beside &= _shares_domain(view, rule.topology_key, counts)
        anywhere = anywhere or bool(counts[view.table.alive & domains.labelled].any())
    if not anywhere and companions.matches(pod.namespace, pod.labels, terminating=False):
        return labelled
    return beside


def _near_avoided(view: ClusterView, pod: Candidate) -> Mask:
    near = np.zeros(view.table.capacity, dtype=np.bool_)
    for rule in pod.required_anti_affinity:
        avoided = view.pods.counts(PodSelector((rule.term(view.namespaces),)), view.table.capacity)
        near |= _shares_domain(view, rule.topology_key, avoided)
    return near


def _forbidden(view: ClusterView, pod: Candidate) -> Mask | None:
    """Return the nodes in a domain of a pod whose anti-affinity means this one; ``None`` when there is no such pod."""
    about = view.rules_about(pod.namespace, pod.labels)
    if about is None or not about.forbidding:
        return None
    forbidden = np.zeros(view.table.capacity, dtype=np.bool_)
    for key, counts in about.forbidding.items():
        forbidden |= _shares_domain(view, key, counts)
    return forbidden


def _shares_domain(view: ClusterView, key: str, counts: Counts) -> Mask:
    """Return the nodes in a domain of ``key`` where ``counts`` are not all zero."""
    domains = view.domains(key)
    shares: Mask = domains.spread(domains.sums(counts, view.table.alive)) > 0
    return shares


FILTER: Final = FilterRule(NAME, refuse)

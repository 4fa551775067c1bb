"""InterPodAffinity as a score: be near pods one likes, and near pods that like this one.

Counted are the pod's own preferred terms and, the other way round, the preferred and required affinity of those placed
pods that mean this one.
"""

from typing import Final

import numpy as np

from spinney.cluster.filters.candidate import Candidate
from spinney.cluster.filters.count_vectors import Counts
from spinney.cluster.filters.pod_selectors import PodSelector
from spinney.cluster.filters.view import ClusterView
from spinney.cluster.scores.scoring import MAX_SCORE, ScoreRule, Scores
from spinney.cluster.table import Mask

NAME: Final = "InterPodAffinity"


def raw_score(view: ClusterView, pod: Candidate) -> Scores | None:
    """Return the summed weights of all terms in each node's domains, unbounded and possibly negative; or nothing."""
    total = np.zeros(view.table.capacity, dtype=np.int64)
    concerned = False

    def add(key: str, carriers: Counts, weights: Counts) -> bool:
        domains = view.domains(key)
        np.add(total, domains.spread(domains.sums(weights, view.table.alive)), out=total)
        return bool(carriers[view.table.alive & domains.labelled].any())

    for weight, rule in pod.preferred_affinity:
        counts = view.pods.counts(PodSelector((rule.term(view.namespaces),)), view.table.capacity)
        concerned |= add(rule.topology_key, counts, weight * counts)
    about = view.rules_about(pod.namespace, pod.labels)
    for key, attraction in about.attracting.items() if about is not None else ():
        concerned |= add(key, attraction.carriers, attraction.weights)
    return total if concerned else None


def score(view: ClusterView, pod: Candidate, mask: Mask) -> Scores | None:
    """Return :func:`raw_score` stretched so that the lowest node in ``mask`` has 0 and the highest 100."""
    raw = raw_score(view, pod)
    if raw is None or not mask.any():
        return None
    lowest, highest = int(raw[mask].min()), int(raw[mask].max())
    if lowest == highest:
        return np.zeros_like(raw)
    return (MAX_SCORE * ((raw - lowest) / (highest - lowest))).astype(np.int64)


INTER_POD_AFFINITY: Final = ScoreRule(NAME, score, weight=2)

"""NodeAffinity as a score: the weights of the preferred terms a node matches."""

from typing import Final

import numpy as np

from spinney.cluster.filters.candidate import Candidate
from spinney.cluster.filters.label_masks import matches_term
from spinney.cluster.filters.view import ClusterView
from spinney.cluster.scores.scoring import ScoreRule, Scores, normalised
from spinney.cluster.table import Mask

NAME: Final = "NodeAffinity"


def score(view: ClusterView, pod: Candidate, mask: Mask) -> Scores | None:
    """Return the sum of matching weights, the highest scaled to 100; nothing for a pod without preferences."""
    node_affinity = pod.affinity.node_affinity
    preferred = node_affinity.preferred_during_scheduling_ignored_during_execution if node_affinity else ()
    if not preferred:
        return None
    rows = np.arange(view.table.capacity)
    raw = np.zeros(view.table.capacity, dtype=np.int64)
    for term in preferred:
        raw += term.weight * matches_term(view.table, rows, term.preference)
    return normalised(raw, mask)


NODE_AFFINITY: Final = ScoreRule(NAME, score, weight=2)

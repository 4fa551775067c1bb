"""All scores together: which of the feasible nodes is best for a pod."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from spinney.api.core import Pod
from spinney.cluster.filters.candidate import Candidate
from spinney.cluster.filters.view import ClusterView
from spinney.cluster.journal import Rows
from spinney.cluster.scores.balanced_allocation import BALANCED_ALLOCATION
from spinney.cluster.scores.image_locality import IMAGE_LOCALITY
from spinney.cluster.scores.inter_pod_affinity import INTER_POD_AFFINITY
from spinney.cluster.scores.node_affinity import NODE_AFFINITY
from spinney.cluster.scores.resources_allocated import LEAST_ALLOCATED
from spinney.cluster.scores.scoring import ScoreRule, Scores
from spinney.cluster.scores.taint_toleration import TAINT_TOLERATION
from spinney.cluster.scores.topology_spread import TOPOLOGY_SPREAD
from spinney.cluster.table import Mask

KUBE_SCORES: Final = (
    TAINT_TOLERATION,
    NODE_AFFINITY,
    LEAST_ALLOCATED,
    TOPOLOGY_SPREAD,
    INTER_POD_AFFINITY,
    BALANCED_ALLOCATION,
    IMAGE_LOCALITY,
)
"""kube-scheduler's scores with their default weights."""


class ScoreFramework:
    """Weighted scores, asked about one pod and the nodes that passed its filters. Holds no state of its own."""

    def __init__(self, scores: Sequence[ScoreRule] = KUBE_SCORES) -> None:
        self.scores = tuple(scores)

    def score(self, view: ClusterView, pod: Pod | Candidate, mask: Mask) -> Scores:
        """Return the weighted sum of all scores, ``[node]``; entries outside ``mask`` mean nothing."""
        candidate = pod if isinstance(pod, Candidate) else Candidate.of(pod, view.table.axis)
        total = np.zeros(view.table.capacity, dtype=np.int64)
        for rule in self.scores:
            scores = rule.score(view, candidate, mask)
            if scores is not None:
                total += rule.weight * scores
        return total

    def ranking(self, view: ClusterView, pod: Pod | Candidate, mask: Mask) -> Rows:
        """Return the rows in ``mask``, best first; nodes of equal score in the order of their names."""
        rows = np.flatnonzero(mask)
        totals = self.score(view, pod, mask)[rows]
        return rows[np.lexsort((view.table.rank[rows], -totals))]

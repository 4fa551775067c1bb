"""TaintToleration as a score: prefer nodes with fewer PreferNoSchedule taints the pod does not tolerate."""

from typing import Final

import numpy as np

from spinney.api.affinity import Taint
from spinney.cluster.filters.candidate import Candidate
from spinney.cluster.filters.view import ClusterView
from spinney.cluster.scores.scoring import ScoreRule, Scores, normalised
from spinney.cluster.table import Mask

NAME: Final = "TaintToleration"


def score(view: ClusterView, pod: Candidate, mask: Mask) -> Scores:
    """Return 100 for nodes without soft taints the pod minds, less the more there are."""
    counts = np.array([_minded(pod, taints) for taints in view.table.taints.lists()], dtype=np.int64)
    return normalised(counts[view.table.taints.row_list], mask, reverse=True)


def _minded(pod: Candidate, taints: tuple[Taint, ...]) -> int:
    soft = (taint for taint in taints if taint.effect == "PreferNoSchedule")
    return sum(not any(toleration.tolerates(taint) for toleration in pod.tolerations) for taint in soft)


TAINT_TOLERATION: Final = ScoreRule(NAME, score, weight=3)

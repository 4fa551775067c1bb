"""Scores with kube-scheduler's meaning, as vectors over the node table.

One module per score. :class:`ScoreFramework` adds them up, weighted, over the nodes that passed the filters; ties go to
the node whose name comes first.
"""

from spinney.cluster.scores.balanced_allocation import balanced_allocation
from spinney.cluster.scores.framework import KUBE_SCORES, ScoreFramework
from spinney.cluster.scores.resources_allocated import (
    ShapePoint,
    WeightedResource,
    least_allocated,
    most_allocated,
    requested_to_capacity_ratio,
)
from spinney.cluster.scores.scoring import MAX_SCORE, ScoreFunction, ScoreRule, Scores

__all__ = [
    "KUBE_SCORES",
    "MAX_SCORE",
    "ScoreFramework",
    "ScoreFunction",
    "ScoreRule",
    "Scores",
    "ShapePoint",
    "WeightedResource",
    "balanced_allocation",
    "least_allocated",
    "most_allocated",
    "requested_to_capacity_ratio",
]

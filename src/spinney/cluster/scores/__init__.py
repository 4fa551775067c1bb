"""Scores with kube-scheduler's meaning, as vectors over the node table.

One module per score. :class:`ScoreFramework` adds them up, weighted, over the nodes that passed the filters; ties go to
the node whose name comes first.
"""

from spinney.cluster.scores.framework import KUBE_SCORES, ScoreFramework
from spinney.cluster.scores.scoring import ScoreRule, Scores

__all__ = ["KUBE_SCORES", "ScoreFramework", "ScoreRule", "Scores"]

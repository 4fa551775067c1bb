"""PodTopologySpread as a score: prefer domains with few matching pods, for ScheduleAnyway constraints.

Counts of coarse levels weigh less the more domains there are, so that hostnames do not drown zones.
"""

from typing import Final

import numpy as np

from spinney.api.labels import HOSTNAME
from spinney.cluster.filters.candidate import Candidate
from spinney.cluster.filters.topology_spread import SpreadRule, with_all_labels
from spinney.cluster.filters.view import ClusterView
from spinney.cluster.scores.scoring import MAX_SCORE, ScoreRule, Scores
from spinney.cluster.table import Mask

NAME: Final = "PodTopologySpread"


def score(view: ClusterView, pod: Candidate, mask: Mask) -> Scores | None:
    """Return 100 for the emptiest domains; 0 for nodes that lack a label of some constraint."""
    rules = SpreadRule.of(pod, "ScheduleAnyway")
    if not rules:
        return None
    labelled = with_all_labels(view, rules)
    scored = mask & labelled
    raw = np.zeros(view.table.capacity, dtype=np.float64)
    for rule in rules:
        raw += _crowding(view, pod, rule, labelled, scored)
    return _inverted(np.floor(raw + 0.5).astype(np.int64), scored)


def _crowding(view: ClusterView, pod: Candidate, rule: SpreadRule, labelled: Mask, scored: Mask) -> Scores:
    """Return the matching pods around each node, weighted by how many domains compete, ``[node]``."""
    counts = rule.counts(view, pod.namespace)
    if rule.constraint.topology_key == HOSTNAME:
        size, around = int(np.count_nonzero(scored)), counts
    else:
        domains = view.domains(rule.constraint.topology_key)
        size = len(np.unique(domains.of[scored]))
        around = domains.spread(domains.sums(counts, labelled & rule.eligible(view, pod)))
    crowding: Scores = around * np.log(size + 2) + (rule.constraint.max_skew - 1)
    return crowding


def _inverted(raw: Scores, scored: Mask) -> Scores:
    result = np.zeros_like(raw)
    if scored.any():
        highest, lowest = int(raw[scored].max()), int(raw[scored].min())
        worth = MAX_SCORE * (highest + lowest - raw) // highest if highest else np.full_like(raw, MAX_SCORE)
        result[scored] = worth[scored]
    return result


TOPOLOGY_SPREAD: Final = ScoreRule(NAME, score, weight=2)

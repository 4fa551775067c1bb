"""TaintToleration: a node with a NoSchedule or NoExecute taint takes only pods that tolerate it.

Nodes share a handful of taint lists, which the table numbers; tolerations are judged once per list.
"""

from typing import Final

import numpy as np

from spinney.api.affinity import Taint, Toleration
from spinney.cluster.filters.candidate import Candidate
from spinney.cluster.filters.verdict import FilterRule, Refusal
from spinney.cluster.filters.view import ClusterView
from spinney.cluster.journal import Rows
from spinney.cluster.table import Mask, NodeTable

NAME: Final = "TaintToleration"
REASON: Final = "node(s) had untolerated taint(s)"


def refuse(view: ClusterView, pod: Candidate) -> tuple[Refusal, ...]:
    """Refuse nodes with a taint the pod does not tolerate."""
    return (Refusal.final(NAME, REASON, view.table.alive & ~tolerated(view, pod)),)


def tolerated(view: ClusterView, pod: Candidate) -> Mask:
    """Return the nodes whose hard taints the pod tolerates, ``[node]``; not to be written to."""

    def judge(table: NodeTable, rows: Rows) -> Mask:
        verdicts = np.array([tolerates(pod.tolerations, taints) for taints in table.taints.lists()])
        mask: Mask = table.alive[rows] & verdicts[table.taints.row_list[rows]]
        return mask

    return view.static.mask(view.table, NAME, pod.tolerations_key, judge)


def tolerates(tolerations: tuple[Toleration, ...], taints: tuple[Taint, ...]) -> bool:
    """Tell whether every taint that keeps pods away is tolerated."""
    hard = (taint for taint in taints if taint.effect in {"NoSchedule", "NoExecute"})
    return all(any(toleration.tolerates(taint) for toleration in tolerations) for taint in hard)


FILTER: Final = FilterRule(NAME, refuse)

"""NodeUnschedulable: a cordoned node takes only pods that tolerate the unschedulable taint."""

from typing import Final

from spinney.api.affinity import Taint
from spinney.cluster.filters.candidate import Candidate
from spinney.cluster.filters.verdict import FilterRule, Refusal
from spinney.cluster.filters.view import ClusterView

NAME: Final = "NodeUnschedulable"
REASON: Final = "node(s) were unschedulable"
_TAINT: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


def refuse(view: ClusterView, pod: Candidate) -> tuple[Refusal, ...]:
    """Refuse cordoned nodes."""
    if any(toleration.tolerates(_TAINT) for toleration in pod.tolerations):
        return ()
    return (Refusal.final(NAME, REASON, view.table.alive & view.table.unschedulable),)


FILTER: Final = FilterRule(NAME, refuse)

"""NodeConditions: a node that is not ready, or is under pressure, takes no pod.

kube-scheduler has no such filter: there the node life-cycle controller turns conditions into taints. Schedulers that
must not depend on that controller, as the session scheduler, judge the conditions themselves; a pod that tolerates the
taint of a condition tolerates the condition.
"""

from typing import Final

from spinney.api.affinity import Taint
from spinney.cluster.filters.candidate import Candidate
from spinney.cluster.filters.verdict import FilterRule, Refusal
from spinney.cluster.filters.view import ClusterView

NAME: Final = "NodeConditions"
NOT_READY: Final = "node(s) were not ready"
_PRESSURES: Final = (
    ("memory_pressure", "memory-pressure", "node(s) had memory pressure"),
    ("disk_pressure", "disk-pressure", "node(s) had disk pressure"),
    ("pid_pressure", "pid-pressure", "node(s) had pid pressure"),
    ("network_unavailable", "network-unavailable", "node(s) had unavailable network"),
)


def refuse(view: ClusterView, pod: Candidate) -> tuple[Refusal, ...]:
    """Refuse nodes whose conditions forbid new pods."""
    table = view.table
    columns = [("not-ready", NOT_READY, ~table.ready)]
    columns += [(taint, reason, getattr(table, column)) for column, taint, reason in _PRESSURES]
    return tuple(
        Refusal.final(NAME, reason, table.alive & column)
        for taint, reason, column in columns
        if column.any() and not _is_tolerated(pod, taint)
    )


def _is_tolerated(pod: Candidate, condition: str) -> bool:
    taint = Taint(key=f"node.kubernetes.io/{condition}", effect="NoSchedule")
    return any(toleration.tolerates(taint) for toleration in pod.tolerations)


FILTER: Final = FilterRule(NAME, refuse)

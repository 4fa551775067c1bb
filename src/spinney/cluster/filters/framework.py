"""All filters together: which nodes may take a pod, and what each filter refused.

Both schedulers ask here. The order of filters is kube-scheduler's, so that the first refusal of a node, and with it
every count in a message, is what kube-scheduler would report.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from spinney.api.core import Pod
from spinney.cluster.filters import (
    inter_pod_affinity,
    node_affinity,
    node_conditions,
    node_name,
    node_ports,
    node_unschedulable,
    resources_fit,
    taint_toleration,
    topology_spread,
    volume_binding,
    volume_restrictions,
    volume_zone,
)
from spinney.cluster.filters.candidate import Candidate
from spinney.cluster.filters.verdict import FilterResult, FilterRule, Refusal
from spinney.cluster.filters.view import ClusterView
from spinney.cluster.table import Mask

STATIC_FILTERS: Final = (node_name.FILTER, node_unschedulable.FILTER, taint_toleration.FILTER, node_affinity.FILTER)
NODE_FILTERS: Final = (node_conditions.FILTER, *STATIC_FILTERS)
"""What depends on the node and what the pod asks for alone; the session scheduler judges node conditions itself."""
VOLUME_FILTERS: Final = (volume_restrictions.FILTER, volume_binding.FILTER, volume_zone.FILTER)
POD_FILTERS: Final = (topology_spread.FILTER, inter_pod_affinity.FILTER)

LIVE_FILTERS: Final = (node_ports.FILTER, *VOLUME_FILTERS, *POD_FILTERS)
"""What looks at other pods or at volumes."""

KUBE_FILTERS: Final = (*STATIC_FILTERS, node_ports.FILTER, resources_fit.NOW, *VOLUME_FILTERS, *POD_FILTERS)
"""kube-scheduler's filters in its order."""

SESSION_FILTERS: Final = (*NODE_FILTERS, node_ports.FILTER, resources_fit.AFTER_RELEASE, *VOLUME_FILTERS, *POD_FILTERS)
"""The session scheduler's: it counts what is being released as room."""


PRE_FILTER: Final = "PreFilter"
"""The name under which nodes are counted that a filter left out before it looked at any."""


class FilterFramework:
    """Filters in order, asked about one pod and all nodes. Holds no state of its own."""

    def __init__(self, filters: Sequence[FilterRule] = KUBE_FILTERS) -> None:
        self.filters = tuple(filters)

    def feasible(
        self, view: ClusterView, pod: Pod | Candidate, within: Mask | None = None, *, thorough: bool = False
    ) -> FilterResult:
        """Return the nodes that pass every filter; stops asking when none is left.

        ``within`` confines the question to some nodes ``[node]``; refusals are only counted there. ``thorough`` has
        every filter asked about every node: what remedies are read off.
        """
        candidate = pod if isinstance(pod, Candidate) else Candidate.of(pod, view.table.axis)
        nodes = view.table.alive.copy() if within is None else view.table.alive & within
        mask = nodes.copy()
        refusals: list[Refusal] = []
        restricting: list[str] = []
        allowed = mask.copy()
        for rule in self.filters:
            restriction = rule.restrict(view, candidate) if rule.restrict is not None else None
            if restriction is None:
                continue
            if restriction.reason is not None:
                return FilterResult(np.zeros_like(mask), (), restriction.reason)
            if restriction.nodes is not None:
                restricting.append(rule.name)
                allowed &= restriction.nodes
        if restricting:
            reason = f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(restricting))}]"
            refusals.append(Refusal.final(PRE_FILTER, reason, nodes & ~allowed))
            mask &= allowed
        for rule in self.filters:
            if not thorough and not mask.any():
                break
            for refusal in rule.refuse(view, candidate):
                here = refusal.nodes & nodes & allowed
                if here.any():
                    refusals.append(Refusal(refusal.filter, refusal.reason, here, refusal.unresolvable & here))
                    mask &= ~here
        return FilterResult(mask, tuple(refusals))

"""PodTopologySpread: matching pods stay evenly spread over the domains of a label.

A constraint allows a node if, with the pod on it, its domain holds at most ``maxSkew`` matching pods more than the
emptiest eligible domain. Eligible are the nodes that have the labels of all constraints and, as the constraint's
policies say, match the pod's node affinity and have no taint it does not tolerate.
"""

from typing import Final

import msgspec
import numpy as np

from spinney.api.affinity import TopologySpreadConstraint
from spinney.api.selectors import Selector
from spinney.cluster.filters import node_affinity, taint_toleration
from spinney.cluster.filters.candidate import Candidate
from spinney.cluster.filters.count_vectors import Counts
from spinney.cluster.filters.pod_selectors import PodSelector, PodTerm, with_label_keys
from spinney.cluster.filters.verdict import FilterRule, Refusal
from spinney.cluster.filters.view import ClusterView
from spinney.cluster.table import Mask

NAME: Final = "PodTopologySpread"
REASON: Final = "node(s) didn't match pod topology spread constraints"
MISSING_LABEL: Final = f"{REASON} (missing required label)"


class SpreadRule(msgspec.Struct, frozen=True):
    """A spread constraint with the pods it means resolved for the pod that carries it."""

    constraint: TopologySpreadConstraint
    selector: Selector | None

    @classmethod
    def of(cls, pod: Candidate, action: str) -> "tuple[SpreadRule, ...]":
        """Return the constraints of ``pod`` with this ``whenUnsatisfiable``."""
        return tuple(
            cls(constraint, with_label_keys(constraint.label_selector, pod.labels, constraint.match_label_keys))
            for constraint in pod.pod.spec.topology_spread_constraints
            if constraint.when_unsatisfiable == action
        )

    def counts(self, view: ClusterView, namespace: str) -> Counts:
        """Return the pods this rule counts on each node; as in kube-scheduler an empty selector counts none."""
        capacity = view.table.capacity
        if self.selector is None or not self.selector.requirements:
            return np.zeros(capacity, dtype=np.int64)
        term = PodTerm(frozenset([namespace]), self.selector)
        return view.pods.counts(PodSelector((term,), live=True), capacity)

    def counts_itself(self, pod: Candidate) -> bool:
        """Tell whether the pod is one of those it spreads with."""
        return self.selector is not None and self.selector.matches(pod.labels)

    def eligible(self, view: ClusterView, pod: Candidate) -> Mask:
        """Return the nodes whose pods and domains count, by the policies of the constraint."""
        nodes = view.table.alive
        if self.constraint.node_affinity_policy != "Ignore":
            nodes = nodes & node_affinity.matched(view, pod)
        if self.constraint.node_taints_policy == "Honor":
            nodes = nodes & taint_toleration.tolerated(view, pod)
        return nodes


def with_all_labels(view: ClusterView, rules: tuple[SpreadRule, ...]) -> Mask:
    """Return the nodes that lie in a domain of every rule, ``[node]``."""
    labelled = view.table.alive.copy()
    for rule in rules:
        labelled &= view.domains(rule.constraint.topology_key).labelled
    return labelled


def refuse(view: ClusterView, pod: Candidate) -> tuple[Refusal, ...]:
    """Refuse nodes where a DoNotSchedule constraint would be violated, or whose label is missing."""
    rules = SpreadRule.of(pod, "DoNotSchedule")
    if not rules:
        return ()
    labelled = with_all_labels(view, rules)
    open_nodes = view.table.alive.copy()
    unlabelled = np.zeros_like(open_nodes)
    skewed = np.zeros_like(open_nodes)
    for rule in rules:
        # The first constraint that refuses a node gives the reason.
        missing = open_nodes & ~view.domains(rule.constraint.topology_key).labelled
        unlabelled |= missing
        open_nodes &= ~missing
        uneven = open_nodes & _uneven(view, pod, rule, labelled)
        skewed |= uneven
        open_nodes &= ~uneven
    return (Refusal.final(NAME, MISSING_LABEL, unlabelled), Refusal.evictable(NAME, REASON, skewed))


def _uneven(view: ClusterView, pod: Candidate, rule: SpreadRule, labelled: Mask) -> Mask:
    domains = view.domains(rule.constraint.topology_key)
    eligible = labelled & rule.eligible(view, pod)
    held = domains.sums(rule.counts(view, pod.namespace), eligible)
    present = np.bincount(domains.of[eligible], minlength=domains.size + 1) > 0
    enough = np.count_nonzero(present) >= (rule.constraint.min_domains or 1)
    emptiest = int(held[present].min()) if enough else 0
    uneven: Mask = domains.spread(held) + int(rule.counts_itself(pod)) - emptiest > rule.constraint.max_skew
    return uneven


FILTER: Final = FilterRule(NAME, refuse)

"""Where a pod may and would rather run: node affinity, pod affinity, tolerations and topology spread (``core/v1``).

Operators and effects are plain text: a value that a later Kubernetes adds must not make the pod unreadable. Code that
evaluates one it does not know treats it as not matching.
"""

from spinney.api.selectors import LabelSelector
from spinney.api.struct import Struct


class NodeSelectorRequirement(Struct, frozen=True, kw_only=True):
    """One comparison of a node's label or field."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Struct, frozen=True, kw_only=True):
    """Comparisons that must all hold; a term without any matches no node."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Struct, frozen=True, kw_only=True):
    """Terms of which one must hold."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(Struct, frozen=True, kw_only=True):
    """A term that adds ``weight`` (1 to 100) to the nodes it matches."""

    weight: int
    preference: NodeSelectorTerm


class NodeAffinity(Struct, frozen=True, kw_only=True):
    """What the node must be, and what it had better be."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] = ()


class PodAffinityTerm(Struct, frozen=True, kw_only=True):
    """Pods, by label and namespace, and the node label whose value must be shared (or not) with them."""

    topology_key: str
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(Struct, frozen=True, kw_only=True):
    """A pod affinity term that counts ``weight`` (1 to 100)."""

    weight: int
    pod_affinity_term: PodAffinityTerm


class PodAffinity(Struct, frozen=True, kw_only=True):
    """Pods to be with; the same shape says which pods to be away from."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class Affinity(Struct, frozen=True, kw_only=True):
    """All affinities of a pod."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Taint(Struct, frozen=True, kw_only=True):
    """A mark on a node that repels the pods which do not tolerate it."""

    key: str
    effect: str
    value: str = ""


class Toleration(Struct, frozen=True, kw_only=True):
    """Taints a pod puts up with; an empty key with ``Exists`` tolerates every taint, an empty effect every effect."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None

    def tolerates(self, taint: Taint) -> bool:
        """Tell whether this toleration covers ``taint``."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        match self.operator:
            case "Exists":
                return True
            case "" | "Equal":
                return self.key != "" and self.value == taint.value
            case "Lt" | "Gt":
                return self._compares(taint.value)
            case _:
                return False

    def _compares(self, value: str) -> bool:
        try:
            present, bound = int(value), int(self.value)
        except ValueError:
            return False
        return present < bound if self.operator == "Lt" else present > bound


class TopologySpreadConstraint(Struct, frozen=True, kw_only=True):
    """How unevenly pods may lie over the values of a node label."""

    max_skew: int
    topology_key: str
    when_unsatisfiable: str
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()

"""NodeAffinity: the node matches the pod's node selector and its required node affinity."""

from typing import Final

from spinney.cluster.filters.candidate import Candidate
from spinney.cluster.filters.label_masks import NAME_FIELD, matches_labels, matches_selector
from spinney.cluster.filters.verdict import FilterRule, Refusal, Restriction
from spinney.cluster.filters.view import ClusterView
from spinney.cluster.journal import Rows
from spinney.cluster.table import Mask, NodeTable

NAME: Final = "NodeAffinity"
REASON: Final = "node(s) didn't match Pod's node affinity/selector"
CONFLICT: Final = "pod affinity terms conflict"


def refuse(view: ClusterView, pod: Candidate) -> tuple[Refusal, ...]:
    """Refuse nodes that the pod's node selector or required affinity leaves out."""
    if not _is_constrained(pod):
        return ()
    return (Refusal.final(NAME, REASON, view.table.alive & ~matched(view, pod)),)


def restrict(view: ClusterView, pod: Candidate) -> Restriction | None:
    """Leave only the nodes the pod asks for by name, if every term of its affinity names some."""
    required = pod.required_node_affinity
    if required is None or not required.node_selector_terms:
        return None
    wanted: set[str] = set()
    for term in required.node_selector_terms:
        fields = [f for f in term.match_fields if f.key == NAME_FIELD and f.operator == "In"]
        if not fields:
            return None
        wanted |= set.intersection(*(set(field.values) for field in fields))
    if not wanted:
        return Restriction(reason=CONFLICT)
    rows = [row for row in map(view.table.find, wanted) if row is not None]
    return Restriction(nodes=view.table.mask(rows))


def matched(view: ClusterView, pod: Candidate) -> Mask:
    """Return the nodes that match node selector and required affinity, ``[node]``; not to be written to."""
    if not _is_constrained(pod):
        return view.table.alive
    required = pod.required_node_affinity

    def judge(table: NodeTable, rows: Rows) -> Mask:
        mask = matches_labels(table, rows, pod.pod.spec.node_selector)
        return mask & matches_selector(table, rows, required) if required is not None else mask

    return view.static.mask(view.table, NAME, pod.node_affinity_key, judge)


def _is_constrained(pod: Candidate) -> bool:
    return bool(pod.pod.spec.node_selector) or pod.required_node_affinity is not None


FILTER: Final = FilterRule(NAME, refuse, restrict)

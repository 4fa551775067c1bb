"""NodeName: a pod that names its node fits no other."""

from typing import Final

from spinney.cluster.filters.candidate import Candidate
from spinney.cluster.filters.verdict import FilterRule, Refusal, Restriction
from spinney.cluster.filters.view import ClusterView
from spinney.cluster.table import Mask

NAME: Final = "NodeName"
REASON: Final = "node(s) didn't match the requested node name"


def restrict(view: ClusterView, pod: Candidate) -> Restriction | None:
    """Leave only the node named in ``spec.nodeName``."""
    return Restriction(nodes=_named(view, pod)) if pod.pod.spec.node_name else None


def refuse(view: ClusterView, pod: Candidate) -> tuple[Refusal, ...]:
    """Refuse every node but the one named in ``spec.nodeName``."""
    if not pod.pod.spec.node_name:
        return ()
    return (Refusal.final(NAME, REASON, view.table.alive & ~_named(view, pod)),)


def _named(view: ClusterView, pod: Candidate) -> Mask:
    row = view.table.find(pod.pod.spec.node_name)
    return view.table.mask([] if row is None else [row])


FILTER: Final = FilterRule(NAME, refuse, restrict)

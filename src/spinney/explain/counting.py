"""From the masks of filters to counted reasons, and to what alone is in the way on the nearest node.

Filters judge all nodes at once, so each hands over the mask of nodes it refused, per reason. Counting follows
kube-scheduler: a node counts for the first filter, in order, that refused it, and for every reason that filter gave.
A node that exactly one filter refused is a *near* node: that filter is the only obstacle there. The obstacles are read
off the near nodes.
"""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from spinney.cluster.filters.verdict import Refusal, by_filter
from spinney.cluster.table import Mask
from spinney.explain.amounts import amount, listed
from spinney.explain.reasons import FilterReport, Obstacle, PodReport, ReasonCount, Shortage

Describe = Callable[[str, str], str | None]
"""Given a filter and a node: what exactly is in the way there, or ``None`` for the filter's usual words."""
EXAMPLES: Final = 3

RESOURCES_FILTER: Final = "NodeResourcesFit"
_NOT_FOUND: Final = " not found"
"""How kube-scheduler ends the sentence about an object that a pod names and nobody has made."""
_TAINTS: Final = "TaintToleration"
_MIRRORED: Final = frozenset({"NodeUnschedulable", "NodeConditions"})
"""Filters whose obstacle Kubernetes also writes as a taint of the node, so that both have to do with one thing."""
_WORDS: Final = {
    "NodeName": "spec.nodeName names another node than {node}",
    "NodeUnschedulable": "{node} is cordoned",
    "NodeConditions": "{node} is not ready",
    "TaintToleration": "{node} has taints that the pod does not tolerate",
    "NodeAffinity": "{node} does not match the pod's node selector and affinity",
    "NodePorts": "the host port is in use on {node}",
    "VolumeRestrictions": "another pod uses the same volume",
    "VolumeBinding": "{node} reaches no volume for the pod",
    "VolumeZone": "the volume is in another zone than {node}",
    "PodTopologySpread": "pods would be spread too unevenly with this one on {node}",
    "dynamicresources": "{node} has no free devices for the claims of the pod",
    "InterPodAffinity": "other pods attract this one elsewhere, or keep it off {node}",
}


class NodeNames(msgspec.Struct, frozen=True):
    """The nodes masks speak of: ``names[row]``, and the rows that hold a node in the order of their names."""

    names: Sequence[str]
    ordered: NDArray[np.intp]

    def first(self, mask: Mask, limit: int) -> tuple[str, ...]:
        """Return the first ``limit`` names in ``mask``, by name."""
        return tuple(self.names[row] for row in self.ordered[mask[self.ordered]][:limit])

    def count(self, mask: Mask) -> int:
        return int(np.count_nonzero(mask[self.ordered]))


class Room(msgspec.Struct, frozen=True):
    """What is free on each node, ``[node, resource]``, and what the pod asks for, ``[resource]``."""

    free: NDArray[np.int64]
    request: NDArray[np.int64]
    resources: Sequence[str]

    def shortages(self, row: int) -> tuple[Shortage, ...]:
        """Return what one node lacks for the pod."""
        short = np.where(self.request > 0, np.maximum(self.request - self.free[row], 0), 0)
        return tuple(Shortage(resource=self.resources[c], amount=int(short[c])) for c in np.flatnonzero(short).tolist())

    def nearest(self, rows: NDArray[np.intp]) -> int:
        """Return the first of ``rows`` that lacks least, counted in units of the pod's own request."""
        lacking = np.zeros(len(rows))
        for column in np.flatnonzero(self.request > 0).tolist():
            lacking += np.maximum(self.request[column] - self.free[rows, column], 0) / self.request[column]
        return int(rows[np.argmin(lacking)])


def pod_report(
    pod: str,
    nodes: NodeNames,
    refusals: Sequence[Refusal],
    *,
    pre_filter: str | None = None,
    room: Room | None = None,
    alike: int = 1,
    describe: Describe = lambda _filter, _node: None,
) -> PodReport:
    """Count ``refusals``, given in filter order. With ``room`` the report also has the obstacles."""
    remaining = np.zeros(len(nodes.names), dtype=np.bool_)
    remaining[nodes.ordered] = True
    hopeless = np.zeros_like(remaining)
    for refusal in refusals:
        hopeless |= refusal.nodes & refusal.unresolvable
    reports = []
    for name, group in by_filter(refusals).items():
        refused = np.logical_or.reduce([refusal.nodes for refusal in group]) & remaining
        remaining &= ~refused
        if refused.any():
            reasons = [_count(nodes, refusal, refused, hopeless) for refusal in group]
            reports.append(
                FilterReport(
                    filter=name,
                    nodes=nodes.count(refused),
                    reasons=tuple(sorted((r for r in reasons if r.nodes), key=lambda r: r.reason)),
                )
            )
    return PodReport(
        pod=pod,
        total_nodes=len(nodes.ordered),
        feasible_nodes=0 if pre_filter is not None else nodes.count(remaining),
        filters=tuple(reports),
        pre_filter=pre_filter,
        obstacles=_obstacles(nodes, refusals, room, pre_filter, describe),
        alike=alike,
    )


def _obstacles(
    nodes: NodeNames, refusals: Sequence[Refusal], room: Room | None, pre_filter: str | None, describe: Describe
) -> tuple[Obstacle, ...]:
    """Return an obstacle for each filter that is alone in the way on some node; resources first, then most nodes.

    ``refusals`` must come from filters that were all asked about all nodes, or a node may look nearer than it is.
    """
    if pre_filter is not None:
        missing = pre_filter.removesuffix(_NOT_FOUND)
        absent = Obstacle(filter="", text=f"{missing} does not exist", nodes=len(nodes.ordered), node="")
        return (absent,) if missing != pre_filter else ()
    grouped = [(name, np.logical_or.reduce([r.nodes for r in group])) for name, group in by_filter(refusals).items()]
    if room is None or not grouped:
        return ()
    in_the_way = np.sum([mask for _, mask in grouped], axis=0)
    unresolvable = np.logical_or.reduce([r.unresolvable & r.nodes for r in refusals if r.filter == RESOURCES_FILTER])
    found = []
    tainted = dict(grouped).get(_TAINTS, np.zeros_like(grouped[0][1]))
    for name, mask in grouped:
        near = mask & (in_the_way - (tainted if name in _MIRRORED else 0) == 1)
        if name == RESOURCES_FILTER:
            near = near & ~unresolvable
        rows = nodes.ordered[near[nodes.ordered]]
        if not len(rows):
            continue
        row = room.nearest(rows) if name == RESOURCES_FILTER else int(rows[0])
        lacking = room.shortages(row) if name == RESOURCES_FILTER else ()
        found.append(
            Obstacle(
                filter=name,
                text=describe(name, nodes.names[row]) or _words(name, nodes.names[row], lacking),
                nodes=len(rows),
                node=nodes.names[row],
                shortages=lacking,
            )
        )
    return tuple(sorted(found, key=lambda found: (found.filter != RESOURCES_FILTER, -found.nodes, found.filter)))


def _words(name: str, node: str, lacking: Sequence[Shortage]) -> str:
    if name == RESOURCES_FILTER:
        return f"{node} lacks {listed([amount(short.resource, short.amount) for short in lacking])}"
    return _WORDS.get(name, name.replace("{", "{{").replace("}", "}}") + " refuses {node}").format(node=node)


def _count(nodes: NodeNames, refusal: Refusal, refused: Mask, hopeless: Mask) -> ReasonCount:
    counted_here = refusal.nodes & refused
    return ReasonCount(
        reason=refusal.reason,
        nodes=nodes.count(counted_here),
        examples=nodes.first(counted_here, EXAMPLES),
        unresolvable=nodes.count(counted_here & hopeless),
    )

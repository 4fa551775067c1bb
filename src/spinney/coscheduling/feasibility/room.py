"""How many pods of a group find room: counted over nodes, not tried one by one."""

from collections.abc import Sequence
from typing import Final

from spinney.cluster.fitting import Demand
from spinney.cluster.pods import PodRecord
from spinney.cluster.table import Mask, NodeTable
from spinney.coscheduling.feasibility.ranking import NodeRanking

_MANY: Final = 1 << 20


def demands(pods: Sequence[PodRecord], ranking: NodeRanking) -> list[Demand]:
    """Return pods by request class, in the order in which classes appear, each on the nodes that would take it."""
    by_class: dict[int, list[PodRecord]] = {}
    for record in pods:
        by_class.setdefault(record.request.number, []).append(record)
    return [
        # Where other pods have rules, one more pod on a node may be one too many.
        Demand(
            alike[0].request.requests,
            len(alike),
            usable=ranking.open_nodes(alike[0]),
            one_per_node=not ranking.stands_alone(alike[0]),
        )
        for alike in by_class.values()
    ]


def leaves_enough(wanted: Sequence[Demand], table: NodeTable, newcomer: PodRecord) -> Mask | None:
    """Return the nodes a newcomer may take without taking what ``wanted`` needs, ``[node]``.

    ``None``: there is not enough for ``wanted`` as things are, so the newcomer takes nothing from it.
    """
    allowed = table.alive.copy()
    for demand in wanted:
        now = demand.per_node(table.idle)
        total = int(now.sum())
        if total < demand.count:
            return None
        lost = now - demand.per_node(table.idle - newcomer.request.vector(table.idle.shape[1]))
        allowed &= total - lost >= demand.count
    return allowed


def fitting(wanted: Sequence[Demand], table: NodeTable, within: Mask) -> int:
    """Return how many of the pods fit on the nodes ``within``, each class counted as if it were alone."""
    return sum(min(int(demand.per_node(table.idle)[within].sum()), demand.count) for demand in wanted)


def left_over(wanted: Sequence[Demand], table: NodeTable, within: Mask) -> int:
    """Return how many pods of the kinds wanted the nodes ``within`` would hold: the fewer, the tighter the fit."""
    return sum(int(demand.per_node(table.idle, _MANY)[within].sum()) for demand in wanted)

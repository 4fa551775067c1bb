"""How many pods of a group find room: counted over nodes, not tried one by one."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from spinney.cluster.pods import PodRecord
from spinney.cluster.resources import Vector, padded
from spinney.cluster.table import Mask, Matrix, NodeTable
from spinney.coscheduling.judging import Judge
from spinney.explain.domains import pods_per_node

_MANY: Final = 1 << 20


class Demand:
    """Pods of one request class that a group still has to place, and the nodes that would take them."""

    def __init__(self, example: PodRecord, count: int, judge: Judge) -> None:
        self.count = count
        self._request = example.request.requests
        self._open = judge.open_nodes(example)
        # Where other pods have a say, one more pod on a node may be one too many.
        self.alone = judge.stands_alone(example)

    def slots(
        self,
        table: NodeTable,
        less: Vector | None = None,
        *,
        more: Matrix | None = None,
        at_most: int | None = None,
    ) -> Vector:
        """Return how many of the pods fit on each node, ``[node]``.

        ``less`` is taken from every node before, ``more[node, resource]`` is given to each. Not more than there are,
        unless ``at_most`` asks how many more would.
        """
        width = table.idle.shape[1]
        idle = table.idle if less is None else table.idle - padded(less, width)
        idle = idle if more is None else idle + more
        most = (self.count if at_most is None else at_most) if self.alone else 1
        free = pods_per_node(idle, padded(self._request, width), most)
        return np.where(self._open, free, 0)


def demands(pods: Sequence[PodRecord], judge: Judge) -> list[Demand]:
    """Return pods by request class, in the order in which classes appear."""
    by_class: dict[int, list[PodRecord]] = {}
    for record in pods:
        by_class.setdefault(record.request.number, []).append(record)
    return [Demand(alike[0], len(alike), judge) for alike in by_class.values()]


def leaves_enough(wanted: Sequence[Demand], table: NodeTable, newcomer: PodRecord) -> Mask | None:
    """Return the nodes a newcomer may take without taking what ``wanted`` needs, ``[node]``.

    ``None``: there is not enough for ``wanted`` as things are, so the newcomer takes nothing from it.
    """
    allowed = table.alive.copy()
    for demand in wanted:
        now = demand.slots(table)
        total = int(now.sum())
        if total < demand.count:
            return None
        lost = now - demand.slots(table, less=newcomer.request.requests)
        allowed &= total - lost >= demand.count
    return allowed


def fitting(wanted: Sequence[Demand], table: NodeTable, within: Mask) -> int:
    """Return how many of the pods fit on the nodes ``within``, each class counted as if it were alone."""
    return sum(min(int(demand.slots(table)[within].sum()), demand.count) for demand in wanted)


def left_over(wanted: Sequence[Demand], table: NodeTable, within: Mask) -> int:
    """Return how many pods of the kinds wanted the nodes ``within`` would hold: the fewer, the tighter the fit."""
    return sum(int(demand.slots(table, at_most=_MANY)[within].sum()) for demand in wanted)

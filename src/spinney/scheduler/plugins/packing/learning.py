"""What packing knows of the workload, learned anew when enough has changed, and kept from one session to the next."""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from spinney.cluster.classes import RequestClass
from spinney.cluster.devices import DEVICE
from spinney.cluster.resources import GPU
from spinney.scheduler.framework.nodes import Nodes
from spinney.scheduler.plugins.packing.leftovers import AT_FACE_VALUE, Values, values_of_space
from spinney.scheduler.plugins.packing.workload import LEVELS, DemandMix, workload_of

_FEWEST_CHANGES: Final = 8
_CHANGED_PART: Final = 4
_LONGEST: Final = 256
"""Sessions after which the workload is looked at again though about as many pods are there as before."""


@dataclass(frozen=True)
class Knowledge:
    """What is known of the workload, and what free space of a device is worth with it."""

    workload: DemandMix
    values: Values
    placed: int
    """How many pods were placed when it was learned."""
    sessions: int = 0
    """How many sessions have used it."""

    def holds_for(self, placed: int) -> bool:
        """Tell whether it still holds when ``placed`` pods are placed."""
        changes = abs(placed - self.placed)
        return self.sessions < _LONGEST and changes < self._most_changes

    def pods_ahead(self, placed: int) -> int:
        """Return how many more pods it takes, when ``placed`` are, until it no longer holds; 0 if it does not now."""
        return self.placed + self._most_changes - placed if self.holds_for(placed) else 0

    @cached_property
    def _most_changes(self) -> int:
        return max(_FEWEST_CHANGES, self.placed // _CHANGED_PART)

    def says_the_same_as(self, other: "Knowledge") -> bool:
        """Tell whether nodes are scored the same by it as by ``other``."""
        mine, others = self.workload, other.workload
        return (
            np.array_equal(self.values, other.values)
            and np.array_equal(mine.columns, others.columns)
            and np.array_equal(mine.ratios, others.ratios)
        )


def learn(asked: Counter[RequestClass], placed: int, nodes: Nodes, device_memory: int) -> Knowledge:
    """Look at the workload and at the free space of devices."""
    workload = workload_of(asked, device_memory, nodes.table.idle.shape[1])
    if not workload.has_shares:
        return Knowledge(workload, AT_FACE_VALUE, placed)
    rows = nodes.all.rows
    table = nodes.table
    spaces = nodes.ledger.shared.kept_later(rows)
    free = np.bincount(np.clip(spaces[spaces >= 0] * LEVELS // DEVICE, 0, LEVELS), minlength=LEVELS + 1)
    free[LEVELS] += int(np.maximum(table.idle[rows, GPU] + table.releasing[rows, GPU], 0).sum())
    return Knowledge(workload, values_of_space(workload.sizes, free), placed)

"""Parts of GPUs as columns beside the resources of nodes, so that pods that share devices are counted like others.

For each kind of such pods a column says how many of them each node has room for; one of them asks for one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spinney.cluster.classes import DeviceShare, RequestClass
from spinney.cluster.devices import DEVICE
from spinney.cluster.fitting import fit_later_and_now, sharing_pods_per_node
from spinney.cluster.journal import Rows
from spinney.cluster.ledger import Ledger
from spinney.cluster.resources import GPU, Vector
from spinney.cluster.table import Mask, Matrix
from spinney.explain.amounts import amount


@dataclass(frozen=True, eq=False)
class RoomColumns:
    """What nodes have, ``[node, resource]``, with a column for each kind of pods that share devices."""

    free: Matrix
    """Once what is terminating is gone."""
    empty: Matrix
    sharing: tuple[RequestClass, ...]
    """The kinds of pods of the last columns."""

    @classmethod
    def of(cls, ledger: Ledger, rows: Rows, requests: Sequence[RequestClass]) -> "RoomColumns":
        """Return the columns for pods of ``requests`` on the nodes of ``rows``."""
        table, sharing = ledger.table, tuple(each for each in requests if each.share is not None)
        free, empty = table.idle, table.allocatable  # neither is written to
        if table.may_release:
            free = free + table.releasing
        for request in sharing:
            later, _ = fit_later_and_now(ledger, request, rows)
            assert request.share is not None
            fits = np.zeros((table.capacity, 2), dtype=np.int64)
            fits[rows, 0] = sharing_pods_per_node(ledger, request.share, rows) * later
            fits[rows, 1] = _when_empty(empty[rows, GPU], table.gpu_memory[rows], request.share)
            free, empty = np.column_stack([free, fits[:, 0]]), np.column_stack([empty, fits[:, 1]])
        return cls(free, empty, sharing)

    def vector(self, request: RequestClass) -> Vector:
        """Return what a pod asks for, in these columns."""
        asked = request.vector(self.free.shape[1])
        if request in self.sharing:
            asked = asked.copy()
            asked[self.sharing.index(request) - len(self.sharing)] = 1
        return asked

    def names(self, known: Sequence[str]) -> list[str]:
        """Return the name of each column; ``known`` are those of resources, which come first."""
        shares = [_named(each.share) for each in self.sharing if each.share is not None]
        return [*known, *[""] * (self.free.shape[1] - len(known) - len(shares)), *shares]

    def never(self, request: RequestClass) -> Mask:
        """Return for each node whether not even one pod would fit if it were empty."""
        column = self.empty[:, self.sharing.index(request) - len(self.sharing)]
        none: Mask = column == 0
        return none


def _when_empty(gpus: Vector, memory: Vector, share: DeviceShare) -> Vector:
    """Return how many pods nodes with so many GPUs would hold if they were empty, ``[node]``."""
    each: Vector = (DEVICE // np.maximum(share.parts_on_each(memory), 1)) * gpus // share.devices
    return each * (gpus >= share.devices)


def _named(share: DeviceShare) -> str:
    """Return a part of GPUs in words."""
    part = f"{share.parts / DEVICE:g} GPU" if share.parts else f"{amount('memory', share.memory << 20)} of a GPU"
    return f"share of {part}" if share.devices == 1 else f"share of {share.devices} x {part}"

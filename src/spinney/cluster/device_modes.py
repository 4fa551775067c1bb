"""Which nodes have their GPUs in a mode that a pod can use: whole, shared, or cut into MIG instances."""

from spinney.cluster.classes import RequestClass
from spinney.cluster.journal import Rows
from spinney.cluster.table import Mask, NodeTable


def in_usable_mode(table: NodeTable, rows: Rows, request: RequestClass) -> Mask:
    """Return which of ``rows`` may take a pod of a class, as far as the mode of their GPUs goes; ``[row]``."""
    mask = table.alive[rows]
    if request.gpus and not request.constraints.claims:
        mask &= ~table.mig_mixed[rows]
    if request.mig_slices:
        mask &= ~table.mig_single[rows]
    if request.share is not None:
        mask &= ~table.mig_enabled[rows]
        if request.share.memory:
            mask &= table.gpu_memory_known[rows]
    return mask

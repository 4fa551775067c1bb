"""gpusharingorder: nodes that already share a GPU with room for the pod come first, to keep other GPUs whole.

Pods that need no GPU, and those that ask for MIG instances, need no room on it, and are drawn to such nodes as well.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from spinney.cluster.classes import RequestClass
from spinney.extensions.arguments import NoArguments
from spinney.scheduler import scores
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.nodes import NodeSet, Scores
from spinney.scheduler.framework.plugin import Plugin
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo

_NOTHING: Final = np.zeros(1, dtype=np.int64)
"""What a pod without a share takes of a device."""


class GpuSharingOrder(Plugin):
    """Scores nodes that have a partly used GPU."""

    name = "gpusharingorder"
    arguments_type = NoArguments
    treats_alike = True

    def on_session_open(self, session: Session) -> None:
        """Register the score."""
        shared, table = session.ledger.shared, session.nodes.table

        def score(task: PodInfo, job: PodGroupInfo, nodes: NodeSet) -> Scores:
            share = task.request.share
            free = shared.free_later(nodes.rows)
            parts = share.parts_on_each(table.gpu_memory[nodes.rows]) if share is not None else _NOTHING
            has_room = (free >= parts).any(axis=0)
            return np.where(has_room, scores.GPU_SHARING, 0.0)

        def few(request: RequestClass, rows: Sequence[int]) -> list[float]:
            share = request.share
            wanted = [share.parts_on(table.gpu_memory.item(row)) if share is not None else 0 for row in rows]
            return [
                scores.GPU_SHARING if max(shared.free_later_on(row), default=-1) >= parts else 0.0
                for row, parts in zip(rows, wanted, strict=True)
            ]

        # Tasks that take whole devices need a shared one least of all.
        session.add_node_order_columns(
            score, per_job=False, monotone=True, for_requests=lambda request: request.gpus == 0, few=few
        )

"""gpusharingorder: nodes that already share a GPU with room for the pod come first, to keep other GPUs whole.

Pods that need no GPU, and those that ask for MIG instances, need no room on it, and are drawn to such nodes as well.
"""

import numpy as np

from spinney.scheduler import scores
from spinney.scheduler.arguments import NoArguments
from spinney.scheduler.jobs import PodGroupInfo
from spinney.scheduler.nodes import NodeSet, Scores
from spinney.scheduler.plugin import Plugin
from spinney.scheduler.session import Session
from spinney.scheduler.tasks import PodInfo


class GpuSharingOrder(Plugin):
    """Scores nodes that have a partly used GPU."""

    name = "gpusharingorder"
    arguments_type = NoArguments

    def on_session_open(self, session: Session) -> None:
        """Register the score."""
        shared, table = session.ledger.shared, session.nodes.table

        def has_room(task: PodInfo, row: int) -> bool:
            share = task.request.share
            parts = share.parts_on(int(table.gpu_memory[row])) if share is not None else 0
            return any(use.free_later >= parts for use in shared.of_row(row).values())

        def score(task: PodInfo, job: PodGroupInfo, nodes: NodeSet) -> Scores:
            del job
            rows = [row for row in shared.rows() if has_room(task, row)]
            if not rows:
                return np.zeros(len(nodes))
            return np.where(np.isin(nodes.rows, rows), scores.GPU_SHARING, 0.0)

        # Tasks that take whole devices need a shared one least of all.
        session.add_node_order_columns(
            score, per_job=False, monotone=True, applies_to=lambda task: task.request.gpus == 0
        )

"""nominatednode: the node that was nominated for a pod is the best one."""

import numpy as np

from spinney.extensions.arguments import NoArguments
from spinney.scheduler import scores
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.nodes import NodeSet, Scores
from spinney.scheduler.framework.plugin import Plugin
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo


class NominatedNode(Plugin):
    """Scores the node nominated for a task."""

    name = "nominatednode"
    arguments_type = NoArguments
    treats_alike = True

    def on_session_open(self, session: Session) -> None:
        table = session.nodes.table

        def score(task: PodInfo, job: PodGroupInfo, nodes: NodeSet) -> Scores:
            row = table.find(task.nominated_node)
            if row is None:
                return np.zeros(len(nodes))
            return np.where(nodes.rows == row, scores.NOMINATED_NODE, 0.0)

        session.add_node_order_columns(score, stateful=True, applies_to=lambda task: bool(task.nominated_node))

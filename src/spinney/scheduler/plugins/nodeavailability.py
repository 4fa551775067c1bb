"""nodeavailability: a node where the pod fits now is better than one where it must wait for something to end."""

from collections.abc import Sequence

import numpy as np

from spinney.cluster.classes import RequestClass
from spinney.cluster.fitting import few_fit_later_and_now
from spinney.extensions.arguments import NoArguments
from spinney.scheduler import scores
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.nodes import NodeSet, Scores
from spinney.scheduler.framework.plugin import Plugin
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo


class NodeAvailability(Plugin):
    """Scores nodes where the task fits on what is idle."""

    name = "nodeavailability"
    arguments_type = NoArguments
    treats_alike = True

    def on_session_open(self, session: Session) -> None:
        nodes = session.nodes

        def score(task: PodInfo, job: PodGroupInfo, candidates: NodeSet) -> Scores:
            _, now = nodes.resource_fit(task.request, candidates.rows)
            return np.multiply(now, scores.AVAILABILITY, dtype=np.float64)

        def few(request: RequestClass, rows: Sequence[int]) -> list[float]:
            if not nodes.table.may_release:
                return [scores.AVAILABILITY] * len(rows)
            _, now = few_fit_later_and_now(session.ledger, request, rows)
            return [scores.AVAILABILITY if fits else 0.0 for fits in now]

        # Not lost while the node is a candidate for more: only what is being released makes it one without fitting now.
        session.add_node_order_columns(score, per_job=False, monotone=True, few=few)

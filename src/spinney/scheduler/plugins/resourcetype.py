"""resourcetype: a pod that needs no GPU goes to a node that has none."""

import numpy as np

from spinney.cluster.classes import RequestClass
from spinney.cluster.resources import GPU, is_mig
from spinney.extensions.arguments import NoArguments
from spinney.scheduler import scores
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.nodes import NodeSet, Scores
from spinney.scheduler.framework.plugin import Plugin
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo


class ResourceType(Plugin):
    """Scores nodes without GPUs for tasks that need none."""

    name = "resourcetype"
    arguments_type = NoArguments
    treats_alike = True

    def on_session_open(self, session: Session) -> None:
        table = session.nodes.table
        columns = [GPU, *(table.axis.column(name) for name in table.axis if is_mig(name))]
        without = np.where((table.allocatable[:, columns] > 0).any(axis=1), 0.0, scores.RESOURCE_TYPE)

        def score(task: PodInfo, job: PodGroupInfo, nodes: NodeSet) -> Scores:
            found: Scores = without[nodes.rows]
            return found

        session.add_node_order_columns(
            score, per_job=False, reads_usage=False, monotone=True, for_requests=needs_no_gpu
        )


def needs_no_gpu(request: RequestClass) -> bool:
    """Tell whether tasks that make a request ask for no GPU in any form."""
    return not request.requires_gpu and request.mig_slices == 0

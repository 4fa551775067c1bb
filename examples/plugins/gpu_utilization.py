"""A score: nodes whose GPUs are busiest come first, so that others stay empty.

The score is written twice, once per node and once in columns. Both give the same result; the second is for clusters of
thousands of nodes. The argument ``columns: "true"`` chooses it.

    register_plugin_builder("gpu-utilization", GpuUtilization)
"""

import numpy as np

from spinney.scheduler import NodeInfo, NodeSet, Plugin, PodGroupInfo, PodInfo, Scores, Session


class GpuUtilization(Plugin):
    """Scores nodes by the part of their GPUs in use."""

    name = "gpu-utilization"

    def on_session_open(self, session: Session) -> None:
        """Register the score in one of its two forms."""
        if self.arguments.get("columns") == "true":
            session.add_node_order_columns(utilization_of_all, per_job=False, monotone=True)
        else:
            session.add_node_order_fn(utilization)


def utilization(task: PodInfo, node: NodeInfo) -> float:
    """Return the score of one node."""
    return node.gpu_utilization()


def utilization_of_all(task: PodInfo, job: PodGroupInfo, nodes: NodeSet) -> Scores:
    """Return the scores of all nodes; GPUs that are shared count as used."""
    offered = nodes.allocatable("nvidia.com/gpu")
    used = nodes.used("nvidia.com/gpu")
    return np.divide(used, offered, out=np.zeros(len(nodes)), where=offered > 0)

"""A policy for spot instances: only preemptible pods run on them, and those rather run elsewhere.

Nodes are recognised by a label (``runai.io/instance-type: spot``); arguments ``labelKey``, ``labelValue`` and
``nonSpotScore`` change the defaults. The score puts regular nodes in the band of GPU sharing: above how full a node is,
below topology.

    register_plugin_builder("spot-instance-manager", SpotInstances)
"""

from spinney.scheduler import NodeInfo, Plugin, PodGroupInfo, PodInfo, Session


class SpotInstances(Plugin):
    """Keeps pods that cannot be preempted off spot instances, and others away from them where possible."""

    name = "spot-instance-manager"

    def on_session_open(self, session: Session) -> None:
        """Register a predicate and a score."""
        key = self.arguments.get("labelKey", "runai.io/instance-type")
        value = self.arguments.get("labelValue", "spot")
        non_spot_score = float(self.arguments.get("nonSpotScore", "1000"))

        def is_spot(node: NodeInfo) -> bool:
            return node.node.labels.get(key) == value

        def predicate(task: PodInfo, job: PodGroupInfo, node: NodeInfo) -> str | None:
            if job.is_preemptible_job(session.is_inference_preemptible()) or not is_spot(node):
                return None
            return f"non-preemptible pod {task.name} cannot be scheduled on spot instance {node.name}"

        def score(task: PodInfo, node: NodeInfo) -> float:
            return 0.0 if is_spot(node) else non_spot_score

        session.add_predicate_fn(predicate)
        # A label does not change as pods are placed, so the score never falls.
        session.add_node_order_fn(score, monotone=True)

"""A policy for spot instances: only preemptible pods run on them, and those rather run elsewhere.

Nodes are recognised by a label (``runai.io/instance-type: spot``); arguments ``labelKey``, ``labelValue`` and
``nonSpotScore`` change the defaults. The score puts regular nodes in the band of GPU sharing: above how full a node is,
below topology.

    register_plugin_builder("spot-instance-manager", SpotInstances)
"""

import msgspec

from spinney.scheduler import NodeInfo, Plugin, PodGroupInfo, PodInfo, Session, read_arguments


class SpotArguments(msgspec.Struct, frozen=True, rename="camel"):
    """How spot instances are recognised, and how much better all others are."""

    label_key: str = "runai.io/instance-type"
    label_value: str = "spot"
    non_spot_score: float = 1000.0


class SpotInstances(Plugin):
    """Keeps pods that cannot be preempted off spot instances, and others away from them where possible."""

    name = "spot-instance-manager"
    arguments_type = SpotArguments

    def on_session_open(self, session: Session) -> None:
        """Register a predicate and a score."""
        chosen = read_arguments(SpotArguments, self.arguments)

        def is_spot(node: NodeInfo) -> bool:
            return node.node.labels.get(chosen.label_key) == chosen.label_value

        def predicate(task: PodInfo, job: PodGroupInfo, node: NodeInfo) -> str | None:
            if job.is_preemptible_job(session.is_inference_preemptible()) or not is_spot(node):
                return None
            return f"non-preemptible pod {task.name} cannot be scheduled on spot instance {node.name}"

        def score(task: PodInfo, node: NodeInfo) -> float:
            return 0.0 if is_spot(node) else chosen.non_spot_score

        session.add_predicate_fn(predicate)
        session.add_node_order_fn(score)

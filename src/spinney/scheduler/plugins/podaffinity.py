"""podaffinity: near pods one would rather be with, and near pods that would rather be with this one.

The score is the sum of the weights of preferred terms, as it is: unbounded, and negative near pods to be avoided.
"""

import numpy as np

from spinney.cluster.filters.candidate import Candidate
from spinney.cluster.scores.inter_pod_affinity import raw_score
from spinney.extensions.arguments import NoArguments
from spinney.scheduler import scores
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.nodes import NodeSet, Scores
from spinney.scheduler.framework.plugin import Plugin
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo


class PodAffinity(Plugin):
    """Scores nodes by preferred affinity between pods."""

    name = "podaffinity"
    arguments_type = NoArguments
    treats_alike = True

    def on_session_open(self, session: Session) -> None:
        nodes = session.nodes

        def score(task: PodInfo, job: PodGroupInfo, candidates: NodeSet) -> Scores:
            found = raw_score(nodes.view, Candidate(task.record.pod, task.request.requests))
            if found is None:
                return np.zeros(len(candidates))
            return found[candidates.rows].astype(np.float64) * scores.POD_AFFINITY

        def concerns(task: PodInfo) -> bool:
            return task.request.carries_rules or nodes.have_rules_about((task.record.pod,))

        session.add_node_order_columns(score, stateful=True, only_pod_rules=True, applies_to=concerns)

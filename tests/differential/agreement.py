"""Comparing what kube-scheduler did with a pod to what we say about it."""

import numpy as np

from spinney.api.core import Pod
from spinney.cluster.filters import Candidate, ClusterView, FilterFramework
from spinney.cluster.scores import ScoreFramework
from spinney.explain.counting import NodeNames, pod_report
from spinney.explain.rendering import kube_message

from .stock import Answer


def assert_agreement(view: ClusterView, pod: Pod, answer: Answer) -> None:
    """Assert the same feasibility, a node we rank highest, the same counted reasons and the same hope in preemption."""
    candidate = Candidate.of(pod, view.table.axis)
    result = FilterFramework().feasible(view, candidate)
    nodes = NodeNames(view.table.names, view.table.rows())
    message = kube_message(pod_report(pod.metadata.name, nodes, result.refusals, pre_filter=result.pre_filter))
    if answer.node:
        row = view.table.row(answer.node)
        assert result.mask[row], f"{answer.node} was taken, but we say: {message}"
        totals = ScoreFramework().score(view, candidate, result.mask)
        assert totals[row] == totals[result.mask].max(), "another node scores higher with us"
    else:
        assert not result.feasible, f"we found a node, kube-scheduler none: {answer.message}"
        assert answer.message.startswith(message)
        if result.pre_filter is None:  # otherwise kube-scheduler does not count what preemption could do
            assert answer.beyond_preemption == np.count_nonzero(result.unresolvable() & view.table.alive)

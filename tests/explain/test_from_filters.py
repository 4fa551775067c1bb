"""From the masks of the real filters to the message a user reads."""

import pytest

from spinney.api.core import Node, Pod
from spinney.api.struct import JSON, convert
from spinney.cluster.filters import Candidate, ClusterView, FilterFramework
from spinney.cluster.requests import pod_requests
from spinney.cluster.table import Holding, NodeTable
from spinney.explain.counting import NodeNames, Room, pod_report
from spinney.explain.reasons import Explanation, PodReport
from spinney.explain.rendering import as_text, condition_message, kube_message


def a_node(name: str, gpus: int = 8, cpu: str = "16", **spec: object) -> Node:
    allocatable = {"cpu": cpu, "memory": "64Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    return convert(Node, {"metadata": {"name": name}, "spec": spec, "status": {"allocatable": allocatable}})


def a_pod(name: str, gpus: int, cpu: str = "1") -> Pod:
    requests: JSON = {"cpu": cpu, "nvidia.com/gpu": gpus}
    spec = {"containers": [{"name": "main", "resources": {"requests": requests}}]}
    return convert(Pod, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})


@pytest.fixture
def view() -> ClusterView:
    """Five nodes: two busy, one cordoned, one tainted, one too small."""
    view = ClusterView(NodeTable())
    taint = {"key": "maintenance", "effect": "NoSchedule"}
    nodes = [
        a_node("busy-1"),
        a_node("busy-2"),
        a_node("cordoned", unschedulable=True),
        a_node("tainted", taints=[taint]),
    ]
    for node in [*nodes, a_node("small", gpus=2, cpu="1")]:
        view.table.put(node)
    for name, gpus in (("busy-1", 3), ("busy-2", 6)):
        pod, row = a_pod(f"on-{name}", gpus), view.table.row(name)
        view.table.add(row, Holding.ACTIVE, pod_requests(pod, view.table.axis))
        view.pods.place(pod, row)
    return view


def explained(view: ClusterView, pod: Pod) -> PodReport:
    """Return the whole report on a pod."""
    candidate = Candidate.of(pod, view.table.axis)
    result = FilterFramework().feasible(view, candidate, thorough=True)
    nodes = NodeNames(view.table.names, view.table.rows())
    room = Room(view.table.idle, candidate.requests, list(view.table.axis))
    return pod_report("default/big", nodes, result.refusals, pre_filter=result.pre_filter, room=room)


def test_message_counts_what_filters_refused(view: ClusterView) -> None:
    """Every node is counted, once per filter and once per resource it lacks."""
    assert kube_message(explained(view, a_pod("big", gpus=6, cpu="2"))) == (
        "0/5 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s), "
        "1 node(s) were unschedulable, 3 Insufficient nvidia.com/gpu."
    )


def test_the_nearest_node_is_named(view: ClusterView) -> None:
    """The node that lacks least is named with what it lacks, then the nodes with one other obstacle."""
    report = explained(view, a_pod("big", gpus=6, cpu="2"))
    assert [found.text for found in report.obstacles] == [
        "busy-1 lacks 1 GPU",
        "cordoned is cordoned",
        "tainted has taints that the pod does not tolerate",
    ]
    message = condition_message(Explanation(subject="default/big", pods=(report,)))
    assert message.startswith("unschedulable on cluster: the pod found no room; default/big: 0/5 nodes are available")
    assert message.endswith("busy-1 lacks 1 GPU")


def test_unknown_resource_is_explained(view: ClusterView) -> None:
    """A resource that no node has ever offered is reported as missing everywhere, not as an error."""
    requests = {"example.com/quantum": "1"}
    spec = {"containers": [{"name": "main", "resources": {"requests": requests}}]}
    pod = convert(Pod, {"metadata": {"name": "odd", "namespace": "default"}, "spec": spec})
    report = explained(view, pod)
    assert "3 Insufficient example.com/quantum" in kube_message(report)
    assert "may fit once" not in as_text(Explanation(subject="default/odd", pods=(report,)))

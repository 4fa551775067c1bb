"""A decision may be outdated by the time it is to be bound; then the whole gang is left alone and tried again."""

from collections.abc import Callable

import msgspec
import pytest

from spinney.api.core import Node, Pod
from spinney.cluster.dra.book import ClaimBook
from spinney.cluster.pods import PodKey
from spinney.cluster.state import ClusterState
from spinney.cluster.statuses import PodStatus
from spinney.gangs.tree import GangKey
from spinney.scheduler.commit import assume_gang, by_gang, whole_gangs
from spinney.scheduler.results import Bind
from tests.scheduler.process.world import NS

GANG = GangKey("native", NS, "a")


def a_node(name: str, *, gpus: int = 4, unschedulable: bool = False) -> Node:
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    manifest = {
        "metadata": {"name": name, "uid": name},
        "spec": {"unschedulable": unschedulable},
        "status": {"allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    }
    return msgspec.convert(manifest, Node)


def a_pod(name: str, *, uid: str = "", node: str = "", gpus: int = 1) -> Pod:
    container = {"name": "main", "resources": {"requests": {"nvidia.com/gpu": str(gpus)}}}
    manifest = {
        "metadata": {"name": name, "namespace": NS, "uid": uid or name},
        "spec": {"containers": [container], "nodeName": node},
    }
    return msgspec.convert(manifest, Pod)


def a_bind(pod: str, node: str = "n1", *, gang: GangKey = GANG) -> Bind:
    return Bind(PodKey(NS, pod), pod, node, gang)


def a_cluster() -> ClusterState:
    """Return two nodes of four GPUs and three pending pods."""
    cluster = ClusterState()
    for node in ("n1", "n2"):
        cluster.apply_node(a_node(node))
    for pod in ("p0", "p1", "p2"):
        cluster.apply_pod(a_pod(pod))
    return cluster


def test_a_decision_that_holds_takes_its_room_at_once() -> None:
    """What passes is counted on its node before it is bound, so that a second decision cannot use the same room."""
    cluster = a_cluster()
    assert assume_gang(cluster, ClaimBook(), [a_bind("p0"), a_bind("p1")]) is None
    cluster.apply_pod(a_pod("large", gpus=3))
    assert assume_gang(cluster, ClaimBook(), [a_bind("large")]) == "the node has no room any more"
    assert assume_gang(cluster, ClaimBook(), [a_bind("large", "n2")]) is None


@pytest.mark.parametrize(
    ("happens", "problem"),
    [
        (lambda cluster: cluster.delete_node("n2"), "the node is gone"),
        (lambda cluster: cluster.apply_node(a_node("n2", unschedulable=True)), "the node is closed"),
        (lambda cluster: cluster.apply_node(a_node("n2", gpus=0)), "the node has no room any more"),
        (lambda cluster: cluster.apply_pod(a_pod("other", node="n2", gpus=4)), "the node has no room any more"),
        (lambda cluster: cluster.delete_pod(PodKey(NS, "p2")), "the pod is gone"),
        (lambda cluster: cluster.apply_pod(a_pod("p2", uid="another")), "the pod is gone"),
        (lambda cluster: cluster.apply_pod(a_pod("p2", node="n1")), "the pod is Bound"),
    ],
)
def test_an_outdated_decision_drops_the_whole_gang(happens: Callable[[ClusterState], object], problem: str) -> None:
    """If one pod's decision no longer holds, no pod of the gang is assumed and the ledger is as it was."""
    cluster = a_cluster()
    happens(cluster)
    before = cluster.table.idle.copy()

    assert assume_gang(cluster, ClaimBook(), [a_bind("p0"), a_bind("p1"), a_bind("p2", "n2")]) == problem

    assert (cluster.table.idle == before).all()
    for pod in ("p0", "p1"):
        record = cluster.pod(PodKey(NS, pod))
        assert record is not None
        assert record.status is PodStatus.PENDING


def test_gangs_are_handed_over_whole() -> None:
    """While a cycle decides, the last gang is held back, because the rest of it may follow."""
    other = GangKey("native", NS, "b")
    binds = [a_bind("p0"), a_bind("p1"), a_bind("q0", gang=other)]
    assert whole_gangs(binds, 0) == 2
    assert whole_gangs(binds[:2], 0) == 0
    assert whole_gangs(binds, 2) == 2
    assert whole_gangs([], 0) == 0
    assert list(by_gang(binds)) == [GANG, other]

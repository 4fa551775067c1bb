"""A decision may be outdated by the time it is to be bound; then the whole gang is left alone and tried again."""

from collections.abc import Callable, Mapping, Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api.core import Node, Pod
from spinney.cluster.dra.book import ClaimBook
from spinney.cluster.pods import PodKey
from spinney.cluster.state import ClusterState
from spinney.cluster.statuses import PodStatus
from spinney.gangs.tree import GangKey
from spinney.scheduler.framework.results import Binding
from spinney.scheduler.process.commit import (
    PORTION,
    BookPositions,
    assume_gang,
    by_gang,
    changes_since,
    portion,
    whole_gangs,
)
from tests.scheduler.process.world import NS

GANG = GangKey("native", NS, "a")


def a_node(
    name: str, *, gpus: int = 4, unschedulable: bool = False, taint: str = "", labels: Mapping[str, str] | None = None
) -> Node:
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    manifest = {
        "metadata": {"name": name, "uid": name, "labels": dict(labels or {"pool": "train"})},
        "spec": {
            "unschedulable": unschedulable,
            "taints": [{"key": taint, "effect": "NoSchedule"}] if taint else [],
        },
        "status": {"allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    }
    return msgspec.convert(manifest, Node)


def a_pod(name: str, *, uid: str = "", node: str = "", gpus: int = 1, part: str = "", group: str = "") -> Pod:
    container = {"name": "main", "resources": {"requests": {} if part else {"nvidia.com/gpu": str(gpus)}}}
    manifest = {
        "metadata": {
            "name": name,
            "namespace": NS,
            "uid": uid or name,
            "annotations": {"gpu-fraction": part} if part else {},
            "labels": {"runai-gpu-group": group} if group else {},
        },
        "spec": {"containers": [container], "nodeName": node, "nodeSelector": {"pool": "train"}},
    }
    return msgspec.convert(manifest, Pod)


def a_bind(pod: str, node: str = "n1", *, gang: GangKey = GANG, groups: tuple[str, ...] = ()) -> Binding:
    return Binding(PodKey(NS, pod), pod, node, gang, groups)


def assume(cluster: ClusterState, *binds: Binding, since: BookPositions = BookPositions(0, 0)) -> str | None:  # noqa: B008 - frozen
    return assume_gang(cluster, ClaimBook(), binds, changed=changes_since(cluster, since))


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
    assert assume(cluster, a_bind("p0"), a_bind("p1")) is None
    cluster.apply_pod(a_pod("large", gpus=3))
    assert assume(cluster, a_bind("large")) == "the node has no room any more"
    assert assume(cluster, a_bind("large", "n2")) is None


@pytest.mark.parametrize(
    ("happens", "problem"),
    [
        (lambda cluster: cluster.delete_node("n2"), "the node is gone"),
        (lambda cluster: cluster.apply_node(a_node("n2", unschedulable=True)), "unschedulable"),
        (lambda cluster: cluster.apply_node(a_node("n2", taint="repair")), "untolerated taint"),
        (lambda cluster: cluster.apply_node(a_node("n2", labels={"pool": "serve"})), "node affinity/selector"),
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
    decided_at = BookPositions.of(cluster)
    happens(cluster)
    before = cluster.table.idle.copy()

    found = assume(cluster, a_bind("p0"), a_bind("p1"), a_bind("p2", "n2"), since=decided_at)

    assert found is not None
    assert problem in found

    assert (cluster.table.idle == before).all()
    for pod in ("p0", "p1"):
        record = cluster.pod(PodKey(NS, pod))
        assert record is not None
        assert record.status is PodStatus.PENDING


def test_nodes_that_did_not_change_are_not_asked_again() -> None:
    """What the cycle has seen of a node is not judged twice: only nodes that changed since then are."""
    cluster = a_cluster()
    cluster.apply_node(a_node("n2", taint="repair"))
    decided_at = BookPositions.of(cluster)
    cluster.apply_node(a_node("n1", labels={"pool": "train", "new": "label"}))

    assert list(changes_since(cluster, decided_at).rows) == [cluster.table.find("n1")]
    assert assume(cluster, a_bind("p0"), a_bind("p1", "n2"), since=decided_at) is None


@pytest.mark.parametrize(
    ("taken", "groups", "fits"),
    [
        ([], ("new",), True),
        ([a_pod("whole", node="n1", gpus=4)], ("new",), False),
        ([a_pod("half", node="n1", part="0.5", group="shared")], ("shared",), True),
        ([a_pod("most", node="n1", part="0.8", group="shared")], ("shared",), False),
        (
            [a_pod("half", node="n1", part="0.5", group="shared"), a_pod("whole", node="n1", gpus=3)],
            ("shared",),
            True,
        ),
        ([a_pod("half", node="n1", part="0.5", group="other"), a_pod("whole", node="n1", gpus=3)], ("new",), False),
    ],
)
def test_parts_of_devices_are_checked_as_whole_ones_are(taken: list[Pod], groups: tuple[str, ...], fits: bool) -> None:
    """A part is bound only if its device is still free enough, or a whole one is still there to be opened."""
    cluster = a_cluster()
    cluster.apply_pod(a_pod("part", part="0.5"))
    for pod in taken:
        cluster.apply_pod(pod)

    found = assume(cluster, a_bind("part", groups=groups))

    assert found == (None if fits else "the node has no room any more")
    assert (cluster.table.idle >= 0).all()


def with_rules(name: str, spec: Mapping[str, object], node: str = "") -> Pod:
    """Return a pod that holds a host port, or keeps others off."""
    manifest = {
        "metadata": {"name": name, "namespace": NS, "uid": name, "labels": {"app": "db"}},
        "spec": {"containers": [{"name": "main"}], "nodeName": node, **spec},
    }
    return msgspec.convert(manifest, Pod)


PORT = {"containers": [{"name": "main", "ports": [{"hostPort": 80, "containerPort": 80}]}]}
ALONE = {
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "db"}}}
            ]
        }
    }
}


@pytest.mark.parametrize(
    ("own", "others", "problem"),
    [
        (PORT, PORT, "free ports"),
        (PORT, {}, None),
        (ALONE, {}, "anti-affinity"),
        ({}, ALONE, "anti-affinity"),
        ({}, {}, None),
    ],
)
def test_rules_between_pods_hold_when_another_scheduler_was_faster(
    own: Mapping[str, object], others: Mapping[str, object], problem: str | None
) -> None:
    """A pod that came to the node meanwhile may hold the port, or keep the pod off; the decision is then outdated."""
    cluster = a_cluster()
    cluster.apply_node(a_node("n3", labels={"kubernetes.io/hostname": "n3"}))
    cluster.apply_pod(with_rules("p", own))
    decided_at = BookPositions.of(cluster)
    cluster.apply_pod(with_rules("other", others, "n3"))

    found = assume(cluster, a_bind("p", "n3"), since=decided_at)

    assert (found is None) if problem is None else (found is not None and problem in found)


def test_a_node_whose_gpus_change_their_mode_takes_no_pod_that_was_decided_before() -> None:
    """Whole GPUs are not taken from a node that begins to offer MIG instances."""
    cluster = a_cluster()
    decided_at = BookPositions.of(cluster)
    cluster.apply_node(a_node("n1", labels={"pool": "train", "nvidia.com/mig.strategy": "mixed"}))

    assert "another mode" in str(assume(cluster, a_bind("p0"), since=decided_at))


class Growing(list[Binding]):
    """Binds to which a worker appends as soon as somebody has asked how many there are."""

    def __init__(self, first: Sequence[Binding], later: Sequence[Binding]) -> None:
        super().__init__(first)
        self._later = list(later)

    def __len__(self) -> int:
        length = super().__len__()
        self.extend(self._later)
        self._later.clear()
        return length


def test_a_gang_is_whole_though_the_next_begins_meanwhile() -> None:
    """Binds that arrive while the others are counted do not cut a gang in two."""
    other = GangKey("native", NS, "b")
    binds = Growing([a_bind("p0"), a_bind("p1")], [a_bind("p2"), a_bind("q0", gang=other)])
    end = whole_gangs(binds, 0)
    assert [bind.gang for bind in binds[end:]].count(GANG) in {0, 3}


def test_gangs_are_handed_over_whole() -> None:
    """While a cycle decides, the last gang is held back, because the rest of it may follow."""
    other = GangKey("native", NS, "b")
    binds = [a_bind("p0"), a_bind("p1"), a_bind("q0", gang=other)]
    assert whole_gangs(binds, 0) == 2
    assert whole_gangs(binds[:2], 0) == 0
    assert whole_gangs(binds, 2) == 2
    assert whole_gangs([], 0) == 0
    assert list(by_gang(binds)) == [GANG, other]


@given(sizes=st.lists(st.integers(1, 2 * PORTION), max_size=6), complete=st.booleans())
def test_portions_are_whole_gangs_and_together_everything(sizes: list[int], complete: bool) -> None:
    """No gang is cut by a portion, none is larger than it must be, and when all is decided nothing is left over."""
    gangs = [GangKey("native", NS, f"g{n}") for n in range(len(sizes))]
    binds = [
        a_bind(f"{gang.name}-{n}", gang=gang) for gang, size in zip(gangs, sizes, strict=True) for n in range(size)
    ]
    start, seen = 0, []
    while (end := portion(binds, start, complete=complete)) > start:
        together = by_gang(binds[start:end])
        assert end - start - len(list(together.values())[-1]) < PORTION
        seen += list(together)
        start = end
    assert seen == (gangs if complete else gangs[:-1])

"""The cluster state: watch events change the ledger in place, and only as they should."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spinney.api.core import Pod
from spinney.cluster.pods import GPU_GROUP_LABEL, PodKey
from spinney.cluster.resources import CPU, GPU
from spinney.cluster.state import ClusterState, PodChange, UnknownPod
from spinney.cluster.statuses import PodStatus
from tests.cluster.building import a_container, a_node, a_pod


def a_state(*names: str) -> ClusterState:
    """Return a state with eight-core, four-GPU nodes."""
    state = ClusterState()
    for name in names or ("n1",):
        state.apply_node(a_node(name, gpus="4"))
    return state


def idle_cpu(state: ClusterState, node: str = "n1") -> int:
    """Return the idle millicores of a node."""
    return int(state.table.idle[state.table.row(node), CPU])


def test_a_running_pod_takes_from_idle_and_gives_back() -> None:
    """A pod on a node holds its requests until it is deleted."""
    state = a_state()
    state.apply_pod(a_pod(node="n1"))
    assert idle_cpu(state) == 7000

    state.delete_pod(PodKey("team", "p1"))
    assert idle_cpu(state) == 8000


def test_a_terminating_pod_promises_what_it_holds() -> None:
    """What a terminating pod holds is not idle, but it is releasing."""
    state = a_state()
    state.apply_pod(a_pod(node="n1", terminating=True))
    row = state.table.row("n1")

    assert idle_cpu(state) == 7000
    assert state.table.releasing[row, CPU] == 1000


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_holds_nothing(phase: str) -> None:
    """Terminal pods free their resources though they are still there."""
    state = a_state()
    state.apply_pod(a_pod(node="n1"))
    state.apply_pod(a_pod(node="n1", phase=phase))

    assert idle_cpu(state) == 8000


def test_a_pod_may_arrive_before_its_node() -> None:
    """Watches are not ordered between kinds: a pod waits for its node to appear."""
    state = ClusterState()
    state.apply_pod(a_pod(node="n1"))
    state.apply_node(a_node("n1"))

    assert idle_cpu(state) == 7000


def test_a_node_that_comes_back_finds_its_pods() -> None:
    """Pods of a deleted node hold nothing until the node is back."""
    state = a_state()
    state.apply_pod(a_pod(node="n1"))
    state.delete_node("n1")
    state.apply_node(a_node("n1"))

    assert idle_cpu(state) == 7000


def test_a_gated_pod_is_not_pending() -> None:
    """A scheduling gate keeps a pod from being looked at."""
    state = a_state()
    record = state.apply_pod(a_pod(scheduling_gates=()))
    assert record.status is PodStatus.PENDING


def test_an_assumed_pod_holds_its_node_until_confirmed() -> None:
    """A decided bind counts at once, survives an unrelated update, and gives way to the API server's word."""
    state = a_state("n1", "n2")
    key = state.apply_pod(a_pod()).key
    state.assume(key, "n1")
    assert idle_cpu(state, "n1") == 7000

    state.apply_pod(a_pod(labels={"touched": "yes"}))
    assert idle_cpu(state, "n1") == 7000

    state.apply_pod(a_pod(node="n2"))
    assert (idle_cpu(state, "n1"), idle_cpu(state, "n2")) == (8000, 7000)


def test_a_forgotten_assumption_leaves_no_trace() -> None:
    """A bind that failed makes the pod pending again."""
    state = a_state()
    key = state.apply_pod(a_pod()).key
    state.assume(key, "n1")
    state.forget(key)

    assert idle_cpu(state) == 8000
    record = state.pod(key)
    assert record is not None
    assert record.status is PodStatus.PENDING


def test_a_recreated_pod_does_not_inherit_an_assumption() -> None:
    """An assumption is about one pod, not about the next of the same name."""
    state = a_state()
    key = state.apply_pod(a_pod(uid="first")).key
    state.assume(key, "n1")
    state.apply_pod(a_pod(uid="second"))

    assert idle_cpu(state) == 8000


def test_an_unknown_pod_cannot_be_assumed() -> None:
    """Assuming a pod that is gone is an error that names it."""
    with pytest.raises(UnknownPod, match="team/ghost"):
        a_state().assume(PodKey("team", "ghost"), "n1")


def test_sharers_of_a_device_take_one_gpu_together() -> None:
    """Two halves on one device are one GPU less; the device is releasing once both sharers are."""
    state = a_state()
    row = state.table.row("n1")

    def sharer(name: str, *, terminating: bool = False) -> Pod:
        return a_pod(
            name,
            node="n1",
            terminating=terminating,
            annotations={"gpu-fraction": "0.5"},
            labels={GPU_GROUP_LABEL: "g"},
        )

    state.apply_pod(sharer("a"))
    state.apply_pod(sharer("b"))
    assert state.table.idle[row, GPU] == 3

    state.apply_pod(sharer("a", terminating=True))
    assert state.table.releasing[row, GPU] == 0
    state.apply_pod(sharer("b", terminating=True))
    assert state.table.releasing[row, GPU] == 1

    state.delete_pod(PodKey("team", "a"))
    state.delete_pod(PodKey("team", "b"))
    assert state.table.idle[row, GPU] == 4
    assert not state.ledger.shared.of_row(row)


def test_listeners_hear_old_and_new() -> None:
    """Every change of a pod is announced with what it was and what it is."""
    state = a_state()
    heard: list[PodChange] = []
    state.subscribe(heard.append)
    state.apply_pod(a_pod())
    state.apply_pod(a_pod(node="n1"))
    state.delete_pod(PodKey("team", "p1"))

    assert [(change.old is not None, change.new is not None) for change in heard] == [
        (False, True),
        (True, True),
        (True, False),
    ]


events = st.lists(
    st.tuples(
        st.sampled_from(["pod", "delete-pod", "node", "delete-node", "assume", "forget"]),
        st.integers(0, 4),
        st.integers(0, 2),
        st.sampled_from(["", "0.5", "0.25"]),
        st.booleans(),
    ),
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(events)
def test_the_ledger_is_what_its_pods_make_it(history: list[tuple[str, int, int, str, bool]]) -> None:
    """After any history of events the ledger equals one built anew from the pods and nodes that are left."""
    state = ClusterState()
    for kind, pod_number, node_number, fraction, flag in history:
        key, node = PodKey("team", f"p{pod_number}"), f"n{node_number}"
        match kind:
            case "pod":
                state.apply_pod(_a_random_pod(key.name, node, fraction, terminating=flag))
            case "delete-pod":
                state.delete_pod(key)
            case "node":
                state.apply_node(a_node(node, gpus="4", cpu="8" if flag else "16"))
            case "delete-node":
                state.delete_node(node)
            case "assume":
                record = state.pod(key)
                if record is not None and record.status is PodStatus.PENDING:
                    state.assume(key, node, ("g",) if record.request.share else ())
            case _:
                state.forget(key)

    fresh = ClusterState(state.axis)
    for name in state.table:
        found = state.table.nodes[state.table.row(name)]
        assert found is not None
        fresh.apply_node(found)
    for record in state.pods():
        fresh.apply_pod(record.pod)
        if record.status is PodStatus.BINDING:
            fresh.assume(record.key, record.node, record.gpu_groups)
    for name in state.table:
        mine, theirs = state.table.row(name), fresh.table.row(name)
        for matrix in ("allocatable", "used", "idle", "releasing"):
            assert np.array_equal(getattr(state.table, matrix)[mine], getattr(fresh.table, matrix)[theirs])
        assert dict(state.ledger.shared.of_row(mine)) == dict(fresh.ledger.shared.of_row(theirs))


def _a_random_pod(name: str, node: str, fraction: str, *, terminating: bool) -> Pod:
    if not fraction:
        placed = node if terminating else ""
        return a_pod(name, node=placed, terminating=terminating, containers=(a_container(cpu="1"),))
    return a_pod(
        name,
        node=node,
        terminating=terminating,
        annotations={"gpu-fraction": fraction},
        labels={GPU_GROUP_LABEL: f"g-{fraction}"},
    )

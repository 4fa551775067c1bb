"""A state that lives for weeks holds what there is, not what there was."""

import pytest

from spinney.api.affinity import Affinity, PodAffinity, PodAffinityTerm
from spinney.api.core import ContainerPort, PersistentVolumeClaimVolume, Pod, Volume
from spinney.api.selectors import LabelSelector
from spinney.cluster import classes
from spinney.cluster.classes import RequestClasses
from spinney.cluster.dra.book import ClaimBook, ClaimKey
from spinney.cluster.filters import placed_pods
from spinney.cluster.pods import PodKey
from spinney.cluster.resources import ResourceAxis
from spinney.cluster.state import ClusterState
from spinney.cluster.table import NodeTable
from tests.cluster.building import a_container, a_node, a_pod
from tests.weighing import held_by


def a_singular_pod(name: str, node: str, port: int) -> Pod:
    """Return a pod like no other: a claim, a host port and a rule of its own."""
    apart = PodAffinityTerm(topology_key="zone", label_selector=LabelSelector(match_labels={"job": name}))
    rules = PodAffinity(required_during_scheduling_ignored_during_execution=(apart,))
    container = a_container(cpu="1")
    return a_pod(
        name,
        node=node,
        labels={"job": name},
        containers=(type(container)(name="main", ports=(ContainerPort(host_port=port),)),),
        affinity=Affinity(pod_anti_affinity=rules),
        volumes=(Volume(name="data", persistent_volume_claim=PersistentVolumeClaimVolume(claim_name=name)),),
    )


def a_day(state: ClusterState, number: int) -> None:
    """Have nodes and pods come and go, each of them unlike all before."""
    for index in range(80):
        node, pod = f"node-{number}-{index}", f"pod-{number}-{index}"
        state.apply_node(a_node(node, labels={"host": node, f"only-{node}": "yes"}))
        state.apply_pod(a_singular_pod(pod, "", 1024 + number * 80 + index))
        state.assume(PodKey("team", pod), node)
        state.apply_pod(a_singular_pod(pod, node, 1024 + number * 80 + index))
        if index % 2:
            state.delete_node(node)  # its pod is stranded, and goes later
        state.delete_pod(PodKey("team", pod))
        state.delete_node(node)


def test_a_state_forgets_what_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many nodes and pods came and went, what is held stays within a bound."""
    monkeypatch.setattr(classes, "_KEPT", 50)
    monkeypatch.setattr(placed_pods, "FOOTPRINTS_KEPT", 50)
    state = ClusterState()
    for number in range(4):  # until every bound was reached once
        a_day(state, number)
    before = held_by(state)
    for number in range(4, 14):
        a_day(state, number)
    assert held_by(state) < before + before // 4
    assert not state.has_stranded_pods


def test_classes_in_use_are_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A class that a pod has stays the same object with the same number while others pass by."""
    monkeypatch.setattr(classes, "_KEPT", 4)
    book = RequestClasses(ResourceAxis())
    kept = [book.of(a_pod(node_selector={"pool": str(number)})) for number in range(20)]
    numbers = {book.of(a_pod(node_selector={"passing": str(number)})).number for number in range(200)}
    assert len(book) < 100
    assert len(numbers) == 200
    assert [book.of(a_pod(node_selector={"pool": str(number)})) for number in range(20)] == kept
    assert not numbers & {each.number for each in kept}


def test_long_pods_of_the_past_are_not_remembered_for_their_number_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod may say a megabyte: a thousand that came and went are not held because they are few."""
    monkeypatch.setattr(classes, "_KEPT_BYTES", 100_000)
    book = RequestClasses(ResourceAxis())
    kept = book.of(a_pod(node_selector={"kept": "x" * 10_000}))
    for number in range(200):
        book.of(a_pod(node_selector={"passing": f"{number}{'x' * 10_000}"}))
    assert len(book) < 20
    assert book.of(a_pod(node_selector={"kept": "x" * 10_000})) is kept


def test_labels_are_numbered_anew_without_a_copy_noticing() -> None:
    """When values of the past are forgotten, nodes keep their labels, and so do copies made before."""
    table = NodeTable()
    table.put(a_node("old", labels={"host": "old", "zone": "a"}))
    copy = table.fork()
    for number in range(500):
        name = f"n{number}"
        table.put(a_node(name, labels={"host": name, "zone": "b", f"only-{name}": ""}))
        if number < 490:
            table.remove(name)
    assert len(table.labels.values("host")) <= 2 * table.capacity
    for name in ("old", *(f"n{number}" for number in range(490, 500))):
        row = table.row(name)
        assert table.labels.of_row(row)["host"] == name
        assert table.labels.column("host")[row] == table.labels.value_id("host", name)
    assert copy.labels.of_row(copy.row("old")) == {"host": "old", "zone": "a"}
    assert copy.labels.column("host")[copy.row("old")] == copy.labels.value_id("host", "old")


def test_an_assumption_about_a_claim_that_is_gone_ends() -> None:
    """A claim that was deleted before its bind failed leaves nothing behind."""
    book = ClaimBook()
    before = held_by(book)
    for number in range(100):
        key = ClaimKey("team", f"claim-{number}")
        book.assume(key, "n1", (), f"pod-{number}")
        book.forget(key, f"pod-{number}")
    assert held_by(book) == before

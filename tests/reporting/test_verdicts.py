"""What is said of a gang that has less than it needs."""

import pytest
from msgspec import structs

from spinney.api.core import Pod
from spinney.api.interruption import faults
from spinney.api.labels import CHECKPOINT_GRACE, KAI_POD_GROUP, KAI_SUB_GROUP, MIN_RUNTIME
from spinney.cluster.state import ClusterState
from spinney.cluster.statuses import PLACED
from spinney.gangs.book import GangBook, GangMembers
from spinney.gangs.membership import membership
from spinney.gangs.tree import Gang, GangKey, GroupSet, PodSet
from spinney.reporting.controller import StatusKind
from spinney.reporting.pod_gangs import PodGangStatusKind
from spinney.reporting.pod_groups import ScheduledCondition
from spinney.reporting.verdicts import verdict
from spinney.reporting.volcano_groups import VolcanoGroupStatus
from tests.cluster.building import a_node, a_pod

KEY = GangKey("kai", "team", "g")


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([PodSet("leader", 2), PodSet("worker", 1)], "2 of 2 pods are placed: worker has 0 of 1"),
        ([PodSet("leader", 3)], "2 of 2 pods are placed, it needs 3"),
        (
            [PodSet("leader", 2), *(PodSet(f"w{number}", 1) for number in range(5))],
            "2 of 2 pods are placed: w0 has 0 of 1, w1 has 0 of 1, w2 has 0 of 1 and 2 more",
        ),
    ],
    ids=["a part without pods", "one part", "many parts"],
)
def test_a_waiting_gang_names_the_parts_that_are_short(parts: list[PodSet], said: str) -> None:
    """All pods may be placed while a part has none yet: the condition says which."""
    state, book = ClusterState(), GangBook(membership)
    state.subscribe(book.pod_changed)
    state.apply_node(a_node())
    book.put(Gang(key=KEY, root=GroupSet("", tuple(parts))))
    for name in ("a", "b"):
        annotations = {KAI_POD_GROUP: "g"}
        state.apply_pod(a_pod(name, node="n1", annotations=annotations, labels={KAI_SUB_GROUP: "leader"}))
    found = verdict(book.snapshot().gangs[KEY], None, PLACED)
    assert (found.scheduled, found.message) == (False, said)


def members_of(*pods: Pod, minimum: int) -> GangMembers:
    """Return a gang of one part with these pods."""
    state, book = ClusterState(), GangBook(membership)
    state.subscribe(book.pod_changed)
    state.apply_node(a_node())
    book.put(Gang(key=KEY, root=GroupSet("", (PodSet("default", minimum),))))
    for pod in pods:
        state.apply_pod(pod)
    return book.snapshot().gangs[KEY]


def a_member(name: str, phase: str, node: str = "n1") -> Pod:
    """Return a pod of the gang in a phase."""
    pod = a_pod(name, node=node, annotations={KAI_POD_GROUP: "g"})
    return structs.replace(pod, status=structs.replace(pod.status, phase=phase))


@pytest.mark.parametrize("kind", [PodGangStatusKind, VolcanoGroupStatus, ScheduledCondition])
def test_a_pod_that_succeeded_is_no_longer_needed(kind: type[StatusKind[object]]) -> None:
    """One pod of a Job ends before the other, which runs on as it should: the gang is scheduled, whoever says so."""
    members = members_of(a_member("a", "Succeeded"), a_member("b", "Running"), minimum=2)
    assert verdict(members, None, kind.having_nodes).scheduled


def test_a_gang_says_how_many_pods_succeeded() -> None:
    """The message of a gang tells those that have a node from those that need none any more."""
    members = members_of(a_member("a", "Succeeded"), a_member("b", "Running"), minimum=2)
    assert verdict(members, None, PLACED).message == "1 of 2 pods are placed, 1 has succeeded"


@pytest.mark.parametrize(
    "phases",
    [
        {"a": "Failed", "b": "Running"},
        {"a": "Succeeded", "b": "Pending"},
        {"a": "Succeeded", "b": "Failed", "c": "Pending"},
    ],
    ids=["a failed pod comes back", "the next ones wait", "it came back and waits"],
)
def test_a_gang_that_waits_for_pods_is_not_scheduled(phases: dict[str, str]) -> None:
    """Its controller makes pods anew, or more of them: while they have no nodes, what ended before does not count."""
    pods = [a_member(name, phase, "" if phase == "Pending" else "n1") for name, phase in phases.items()]
    assert not verdict(members_of(*pods, minimum=2), None, PLACED).scheduled


def test_a_gang_without_pods_says_so() -> None:
    """A Job that was suspended again has none for a moment: nothing of it is placed, because nothing is there."""
    book = GangBook(membership)
    book.put(Gang(key=KEY, root=GroupSet("", (PodSet("default", 4),))))
    found = verdict(book.snapshot().gangs[KEY], None, PLACED)
    assert (found.scheduled, found.message) == (False, "it has no pods, it needs 4")


def test_only_a_grace_can_be_a_signal() -> None:
    """A min-runtime that names a signal is told it is no duration, and nothing about signals."""
    said = dict(faults({CHECKPOINT_GRACE: "SIGUSR1", MIN_RUNTIME: "SIGTERM"}))
    assert "SIGTERM is the only signal that is sent" in said[CHECKPOINT_GRACE]
    assert "signal" not in said[MIN_RUNTIME]

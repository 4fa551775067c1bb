"""What is said of a gang that has less than it needs."""

import pytest

from spinney.api.interruption import faults
from spinney.api.labels import CHECKPOINT_GRACE, KAI_POD_GROUP, KAI_SUB_GROUP, MIN_RUNTIME
from spinney.cluster.state import ClusterState
from spinney.cluster.statuses import PLACED
from spinney.gangs.book import GangBook
from spinney.gangs.membership import membership
from spinney.gangs.tree import Gang, GangKey, GroupSet, PodSet
from spinney.reporting.verdicts import verdict
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

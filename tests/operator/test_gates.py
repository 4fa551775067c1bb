"""When a PodClique may create its pods: never for a life of its gang that is over."""

from typing import Literal

from spinney.api.grove import PodClique, PodCliqueSpec
from spinney.api.meta import Condition, ObjectMeta
from spinney.api.podgang import INITIALIZED, PodGang, PodGangSpec, PodGangStatus
from spinney.backends import additions
from spinney.operator.desired.gates import may_create_pods
from spinney.testing.builders import a_pod_spec

CLIQUE = PodClique(
    metadata=ObjectMeta(name="x-0-a", uid="bbbbbbbb-2"), spec=PodCliqueSpec(role_name="a", pod_spec=a_pod_spec())
)


def a_gang(record: str, status: Literal["True", "False"] = "False") -> PodGang:
    """Return a gang with this record of its PodCliques, Initialized or not."""
    annotations = {additions.INCARNATION_CLIQUES: record} if record else {}
    condition = Condition(type=INITIALIZED, status=status, reason="Recycled", message="")
    return PodGang(
        metadata=ObjectMeta(name="x-0", uid="g", annotations=annotations),
        spec=PodGangSpec(),
        status=PodGangStatus(conditions=(condition,)),
    )


def may_create(gang: PodGang) -> bool:
    """Ask for the PodClique, with a backend that is ready."""
    return may_create_pods(CLIQUE, gang, backend_ready=lambda _: True)


def test_a_recycled_gang_must_know_a_clique_before_that_makes_pods() -> None:
    """A gang that has lost Initialized gets no pods until its new life is on record: they would be of the old one."""
    assert not may_create(a_gang("|aaaaaaaa"))
    assert may_create(a_gang("|bbbbbbbb"))


def test_in_its_first_life_a_gang_has_no_record_yet() -> None:
    """The record comes with the first references, so until then pods are made."""
    assert may_create(a_gang(""))


def test_a_gang_that_is_complete_learns_of_a_new_clique_first() -> None:
    """A PodClique that was replaced makes pods once its gang has taken note of it."""
    assert not may_create(a_gang("|aaaaaaaa", status="True"))
    assert may_create(a_gang("|aaaaaaaa,bbbbbbbb", status="True"))

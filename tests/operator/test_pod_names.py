"""A pod's name: new for every pod, and the same for every attempt to make one."""

from spinney.api import labels as marks
from spinney.api.core import Pod
from spinney.api.grove import PodClique
from spinney.api.meta import ObjectMeta
from spinney.operator.controllers.pod_names import PodNames
from spinney.testing.builders import a_clique

CLIQUE = PodClique(
    metadata=ObjectMeta(name="model-0-worker", namespace="test", uid="1234"), spec=a_clique("worker").spec
)


def a_pod(name: str, index: int = 0) -> Pod:
    return Pod(metadata=ObjectMeta(name=name, namespace="test", labels={marks.POD_INDEX: str(index)}))


def begin(names: PodNames, index: int = 0, *, there: tuple[str, ...] = (), referenced: tuple[str, ...] = ()) -> str:
    return names.begin(CLIQUE, index, there=set(there), taken={*there, *referenced})


def test_an_attempt_keeps_its_name_whatever_else_is_learnt() -> None:
    """A former pod that is seen to go, or that the gang forgets, does not change the name of a pod under way."""
    names = PodNames()
    former = begin(PodNames())
    tried = begin(names, there=(former,), referenced=(former,))
    assert tried != former

    assert begin(names, referenced=(former,)) == tried
    names.lost(CLIQUE, a_pod(former))
    assert begin(names) == tried
    assert begin(names, referenced=(tried,)) == tried


def test_a_pod_that_is_there_or_was_gets_a_successor_of_another_name() -> None:
    """Once the pod of an attempt was seen, the next pod of its index is another one."""
    seen, gone, made = PodNames(), PodNames(), PodNames()
    first = begin(seen)
    assert begin(seen, there=(first,)) != first

    assert begin(gone) == first
    gone.lost(CLIQUE, a_pod(first))
    assert begin(gone) != first

    assert begin(made) == first
    made.made(CLIQUE, 0)
    made.lost(CLIQUE, a_pod(first))
    assert begin(made) != first


def test_indexes_do_not_share_names() -> None:
    """Attempts for different indexes are different pods, and what becomes of one does not concern the other."""
    names = PodNames()
    first, second = begin(names), begin(names, 1)
    assert first != second
    names.lost(CLIQUE, a_pod(first))
    assert begin(names, 1) == second


def test_a_new_life_is_remembered_until_the_clique_goes() -> None:
    """That a PodClique has lost pods is known until it is forgotten."""
    names = PodNames()
    assert not names.has_lost(CLIQUE)
    names.lost(CLIQUE, a_pod(begin(names)))
    assert names.has_lost(CLIQUE)
    names.forget("1234")
    assert not names.has_lost(CLIQUE)
    assert begin(names) == begin(PodNames())

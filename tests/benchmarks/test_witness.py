"""Whoever is compared with others is judged by the same rules, at every change that a watch shows."""

from collections.abc import Sequence

from benchmarks.peers.families import GANG
from benchmarks.peers.hall import GPUS
from benchmarks.peers.witness import Witness

from spinney.api.core import Pod, PodSpec
from spinney.api.meta import Metadata
from spinney.kube.cache import Change
from spinney.kube.keys import Key

Step = tuple[str, str, str, str]
"""A pod, its gang, the node it was on and the node it is on: none if it is not bound, or gone."""


def judged(steps: Sequence[Step], *, size: int = 2, hopeless: bool = False) -> tuple[str, ...]:
    """Return what a witness says of a gang of ``size`` pods called "new", after some steps."""
    witness = Witness("new", size, hopeless=hopeless)
    for step in steps:
        witness.see(a_change(*step))
    return witness.faults()


def a_change(name: str, gang: str, before: str, after: str) -> Change[Pod]:
    """Return that a pod was bound, or is gone."""
    old, new = (
        Pod(metadata=Metadata(name=name, labels={GANG: gang}), spec=PodSpec(node_name=node)) if node else None
        for node in (before, after)
    )
    return Change(Key("bench", name), old, new, "1")


def test_a_gang_that_takes_what_it_needs_is_right() -> None:
    """Two are evicted and two are bound in their place."""
    full = [(f"a{n}", "old", "", "n1") for n in range(GPUS)]
    gone = [(f"a{n}", "old", "n1", "") for n in range(2)]
    assert judged([*full, *gone, ("b0", "new", "", "n1"), ("b1", "new", "", "n1")]) == ()


def test_a_node_that_had_too_much_for_a_moment_is_told() -> None:
    """A pod bound before the one whose place it takes has gone is a fault, though in the end all is well."""
    full = [(f"a{n}", "old", "", "n1") for n in range(GPUS)]
    faults = judged([*full, ("b0", "new", "", "n1"), ("a0", "old", "n1", "")], size=1)
    assert faults == (f"node n1 has {GPUS} GPUs and had {GPUS + 1} pods",)


def test_evictions_without_need_are_told() -> None:
    """Also where those who were evicted have come back since."""
    steps = [("a0", "old", "", "n1"), ("a0", "old", "n1", ""), ("a0", "old", "", "n1")]
    assert judged(steps, hopeless=True) == ("more than 0 pods were evicted", "1 pods were evicted for 0")
    assert judged(steps) == ("1 pods were evicted for 0",)


def test_a_gang_that_fits_nowhere_is_bound_nowhere() -> None:
    """Not even for a moment."""
    steps = [("b0", "new", "", "n1"), ("b0", "new", "n1", "")]
    assert judged(steps, hopeless=True) == ("1 pods of a gang that fits nowhere were bound",)


def test_a_gang_in_part_and_a_pod_bound_twice_are_told() -> None:
    """Each by what was seen."""
    assert judged([("b0", "new", "", "n1")]) == ("1 of 2 pods are bound",)
    twice = judged([("b0", "new", "", "n1"), ("b0", "new", "n1", "n2")], size=1)
    assert twice == ("pod b0 was bound to n1 and then to n2",)

"""The one predicate that says whether a gang has what it needs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.gangs.tree import GroupSet, Member, PodSet, is_satisfied


def counting(**counts: int):  # type: ignore[no-untyped-def]
    """Return a count function by pod set name."""
    return lambda pod_set: counts.get(pod_set.name, 0)


def test_a_pod_set_needs_its_minimum() -> None:
    """One pod fewer than the minimum is not enough."""
    workers = PodSet("workers", 3)

    assert is_satisfied(workers, counting(workers=3))
    assert not is_satisfied(workers, counting(workers=2))


def test_a_group_set_needs_all_members_unless_it_says_how_many() -> None:
    """Without a number all members must be satisfied; with one, that many."""
    members = (PodSet("a", 1), PodSet("b", 1), PodSet("c", 1))

    assert not is_satisfied(GroupSet("all", members), counting(a=1, b=1))
    assert is_satisfied(GroupSet("two", members, min_groups=2), counting(a=1, b=1))
    assert not is_satisfied(GroupSet("four", members, min_groups=4), counting(a=1, b=1, c=1))


@pytest.mark.parametrize("pods", [0, 5])
def test_an_optional_pod_set_is_always_satisfied(pods: int) -> None:
    """A minimum of zero asks for nothing."""
    assert is_satisfied(PodSet("extra", 0), counting(extra=pods))


trees: st.SearchStrategy[Member] = st.recursive(
    st.builds(PodSet, st.sampled_from("abcdef"), st.integers(0, 3)),
    lambda inner: st.builds(
        lambda members, minimum: GroupSet("g", tuple(members), minimum),
        st.lists(inner, min_size=1, max_size=3),
        st.none() | st.integers(0, 3),
    ),
    max_leaves=8,
)


@given(trees, st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 4)), st.sampled_from("abcdef"))
def test_more_pods_never_break_a_gang(tree: Member, counts: dict[str, int], more: str) -> None:
    """Satisfaction is monotone: a satisfied gang stays so when a pod is added."""
    if is_satisfied(tree, counting(**counts)):
        assert is_satisfied(tree, counting(**{**counts, more: counts.get(more, 0) + 1}))

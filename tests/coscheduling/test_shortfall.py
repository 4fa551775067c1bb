"""How many more pods a group needs: enough, and never more than the fewest that satisfy its tree."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from spinney.coscheduling.groups.needs import shortfall
from spinney.gangs.tree import GroupSet, Member, PodSet, is_satisfied


@st.composite
def trees(draw: st.DrawFn) -> GroupSet:
    """Return a tree of up to three levels and five pod sets, some of whose members suffice."""
    names = iter("abcde")
    left = draw(st.integers(1, 5))

    def member(depth: int) -> Member:
        nonlocal left
        if depth == 2 or left <= 1 or draw(st.booleans()):
            left -= 1
            return PodSet(next(names), draw(st.integers(0, 3)))
        return group(depth + 1)

    def group(depth: int) -> GroupSet:
        members = [member(depth)]
        while left > 0 and draw(st.booleans()):
            members.append(member(depth))
        return GroupSet(f"group-{left}-{depth}", tuple(members), draw(st.integers(1, len(members))))

    return group(0)


@given(trees(), st.lists(st.integers(0, 3), min_size=5, max_size=5))
def test_it_is_what_is_needed_and_no_more(tree: GroupSet, counts: list[int]) -> None:
    """With the shortfall placed the tree is satisfied, and no smaller number of pods, however chosen, satisfies it."""
    placed = dict(zip("abcde", counts, strict=True))
    wanted = shortfall(tree, lambda each: placed[each.name])
    assert suffices(tree, placed, wanted)
    names = [pod_set.name for pod_set in tree.pod_sets()]
    choices = (dict(zip(names, more, strict=True)) for more in product(range(4), repeat=len(names)))
    assert sum(wanted.values()) == min(sum(each.values()) for each in choices if suffices(tree, placed, each))


def suffices(tree: GroupSet, placed: dict[str, int], more: dict[str, int]) -> bool:
    """Tell whether so many more pods satisfy the tree."""
    return is_satisfied(tree, lambda each: placed[each.name] + more.get(each.name, 0))

"""The order of the members of a group set: who is served first when a gang is short of pods, or grows.

Members below their minimum come before satisfied ones. Among satisfied ones those with a minimum come before optional
ones (minimum 0); two optional ones go by how many pods they have, two others by how many they have for each they need.
The name decides in the end.
"""

from collections.abc import Callable

from spinney.gangs.tree import GroupSet, Member, PodSet, is_satisfied

Rank = tuple[int, float, str]
"""Sorts members, the first to be served first."""


def member_rank(member: Member, active: Callable[[PodSet], int]) -> Rank:
    """Return the place of a member among its siblings."""
    have = allocated(member, active)
    if have < member.minimum:
        return (0, 0.0, member.name)
    if member.minimum == 0:
        return (2, float(have), member.name)
    return (1, have / member.minimum, member.name)


def allocated(member: Member, active: Callable[[PodSet], int]) -> int:
    """Return how much of its minimum a member has: placed pods, or satisfied members."""
    if isinstance(member, GroupSet):
        return sum(is_satisfied(child, active) for child in member.members)
    return active(member)

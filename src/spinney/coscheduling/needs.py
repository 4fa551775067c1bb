"""What a group's tree asks for: how many more pods of which sets, and what has to lie in one topology domain."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from spinney.gangs.tree import Member, PodSet


@dataclass(frozen=True, slots=True)
class Scope:
    """A group, or a part of it, whose pods lie in one domain of a topology key."""

    name: str
    key: str
    parts: frozenset[str]
    """The pod sets in it."""
    minimum: int
    """How many of its pods must be placed."""
    inner: frozenset[str]
    """The scopes inside."""


def shortfall(member: Member, placed: Callable[[PodSet], int]) -> dict[str, int]:
    """Return how many more pods of which sets satisfy a tree, as few as possible; of equal choices the first."""
    if isinstance(member, PodSet):
        return {member.name: max(member.min_member - placed(member), 0)}
    choices = sorted((shortfall(child, placed) for child in member.members), key=lambda each: sum(each.values()))
    return {name: count for each in choices[: member.minimum] for name, count in each.items()}


def scopes_in(member: Member) -> Iterator[Scope]:
    """Return what of a tree lies in one domain of a topology key, the whole before its parts."""
    below = [] if isinstance(member, PodSet) else [scope for child in member.members for scope in scopes_in(child)]
    if member.topology is not None and member.topology.required:
        yield Scope(
            name=member.name,
            key=member.topology.required,
            parts=frozenset(pod_set.name for pod_set in member.pod_sets()),
            minimum=sum(shortfall(member, lambda _: 0).values()),
            inner=frozenset(scope.name for scope in below),
        )
    yield from below

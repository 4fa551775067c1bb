"""What a group's tree asks for: how many more pods of which sets, and what has to lie in one topology domain."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations, islice, product
from typing import Final

from spinney.gangs.tree import Member, PodSet, is_satisfied

Count = Callable[[PodSet], int]
"""Tells how many pods of a set count."""

_MOST_CHOICES: Final = 64
"""How many ways to satisfy a tree are thought of: a tree that needs half of many groups has more than can be tried."""


@dataclass(frozen=True, slots=True)
class DomainScope:
    """A group, or a part of it, whose pods lie in one domain of a topology key."""

    name: str
    key: str
    parts: frozenset[str]
    """The pod sets in it."""
    minimum: int
    """How many of its pods must be placed."""
    inner: frozenset[str]
    """The scopes inside."""


def shortfall(member: Member, placed: Count, existing: Count | None = None) -> dict[str, int]:
    """Return how many more pods of which sets satisfy a tree, as few as possible; of equal choices the first.

    Where it is known how many pods of each set are ``existing``, what they can satisfy comes before what they cannot.
    """
    if isinstance(member, PodSet):
        return {member.name: max(member.min_member - placed(member), 0)}
    found: list[tuple[bool, int, dict[str, int]]] = []
    for child in member.members:
        missing = shortfall(child, placed, existing)
        found.append((existing is not None and not is_satisfied(child, existing), sum(missing.values()), missing))
    found.sort(key=lambda each: each[:2])
    return {name: count for *_, missing in found[: member.minimum] for name, count in missing.items()}


def choices(member: Member, placed: Count, existing: Count) -> list[dict[str, int]]:
    """Return the ways to satisfy a tree with the pods there are, each as :func:`shortfall` does, fewest pods first."""
    if isinstance(member, PodSet):
        missing = max(member.min_member - placed(member), 0)
        return [{member.name: missing}] if placed(member) + missing <= existing(member) else []
    options = [found for child in member.members if (found := choices(child, placed, existing))]
    options.sort(key=lambda found: sum(found[0].values()))
    ways = (way for some in combinations(options, member.minimum) for way in product(*some))
    merged = [{name: count for each in way for name, count in each.items()} for way in islice(ways, _MOST_CHOICES)]
    return sorted(merged, key=lambda each: sum(each.values()))


def scopes_in(member: Member) -> Iterator[DomainScope]:
    """Return what of a tree lies in one domain of a topology key, the whole before its parts."""
    below = [] if isinstance(member, PodSet) else [scope for child in member.members for scope in scopes_in(child)]
    if member.topology is not None and member.topology.required:
        yield DomainScope(
            name=member.name,
            key=member.topology.required,
            parts=frozenset(pod_set.name for pod_set in member.pod_sets()),
            minimum=member.fewest,
            inner=frozenset(scope.name for scope in below),
        )
    yield from below

"""Planning ahead: which domain each of several gangs would get, so that one does not take the place of another.

Gangs are taken in order. One that has room is given the tightest domain; for one that has none the places of all before
it are searched anew, largest gang first, and it goes without only if nothing was found. A gang takes from its domain
and from all above it, from none below: its pods may be on any node there. So a level is enough by itself, whichever
nodes are taken in the end, as long as each domain keeps what is planned inside it.

A search that was not finished for want of steps counts as one that found nothing; whether there is nothing is then not
known of that gang.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinney.scheduler.topology.domains import Level, Numbers

_ODD: Final = np.uint64(0x9E3779B97F4A7C15)


class GangSize(NamedTuple):
    """A gang: the level of which it needs one domain, as a depth, and its pods."""

    depth: int
    pods: int


class SearchSteps:
    """How many choices may still be looked at, in all and by one search. Mutable: a purse."""

    def __init__(self, number: int, each: int) -> None:
        self.number = number
        self._each = each
        self._reserve = 0
        """What the search that goes on may not take."""

    def begin(self) -> None:
        """Begin a search."""
        self._reserve = max(self.number - self._each, 0)

    @property
    def spent(self) -> bool:
        """Tell whether the search that goes on has none left."""
        return self.number <= self._reserve

    def spend(self) -> bool:
        """Take one; tell whether there was one."""
        if self.spent:
            return False
        self.number -= 1
        return True


class Planned(NamedTuple):
    """The domain of each gang that gets one, and those of which it is not known whether they could have had one."""

    given: dict[int, int]
    open: frozenset[int]


class DomainRoom:
    """How many pods each domain still has room for, level by level. Mutable: a ledger."""

    def __init__(self, levels: Sequence[Level], room: Sequence[Numbers]) -> None:
        self._parents = [level.parent for level in levels]
        self.left = [each.copy() for each in room]
        """By depth and domain."""

    @property
    def sound(self) -> bool:
        """Tell whether no domain was asked for more than it has."""
        return all(left.min(initial=0) >= 0 for left in self.left)

    def take(self, depth: int, domain: int, pods: int) -> None:
        """Take room from a domain and all above it, or with a negative number give it back."""
        for each in range(depth, -1, -1):
            self.left[each][domain] -= pods
            domain = int(self._parents[each][domain])

    def within(self, depth: int, top: int = 0) -> Numbers:
        """Return how much may be taken from each domain of a level, looking up as far as the level ``top``."""
        least = self.left[top]
        for each in range(top + 1, depth + 1):
            least = np.minimum(self.left[each], least[self._parents[each]])
        return least

    def places(self, wanted: GangSize) -> Sequence[int]:
        """Return the domains that hold a gang, tightest first; of domains that cannot be told apart only one."""
        depth, pods = wanted
        found = np.flatnonzero(self.within(depth) >= pods)
        if len(found) == 0:
            return ()
        left, parents, inside = self.left[depth][found], self._parents[depth][found], self._inside(depth)[found]
        above = self.left[depth - 1][parents] if depth else parents
        order = np.lexsort((inside, parents, above, left))
        left, parents, inside = left[order], parents[order], inside[order]
        alike = (left[1:] == left[:-1]) & (parents[1:] == parents[:-1]) & (inside[1:] == inside[:-1])
        chosen: list[int] = found[order[np.concatenate(([True], ~alike))]].tolist()
        return chosen

    def _inside(self, depth: int) -> npt.NDArray[np.uint64]:
        """Return a number for each domain of a level that tells what is left inside it, in whatever order."""
        found = np.zeros(len(self.left[-1]), dtype=np.uint64)
        for each in range(len(self.left) - 1, depth, -1):
            above = np.zeros(len(self.left[each - 1]), dtype=np.uint64)
            np.add.at(above, self._parents[each], _scattered(self.left[each].astype(np.uint64) ^ _scattered(found)))
            found = above
        return found


def _scattered(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return numbers far from each other for numbers close to each other: then equal sums have equal parts."""
    spread = (numbers + _ODD) * _ODD
    spread = (spread ^ (spread >> np.uint64(29))) * _ODD
    found: npt.NDArray[np.uint64] = spread ^ (spread >> np.uint64(32))
    return found


def plan(room: DomainRoom, gangs: Sequence[GangSize], steps: SearchSteps) -> Planned:
    """Return which gangs get a domain, by their place in ``gangs``, and take the room."""
    given: dict[int, int] = {}
    unknown: set[int] = set()
    refused: dict[int, int] = {}
    """By level, the smallest gang that certainly has no room: then no larger one has, whoever else is given some."""
    for number, wanted in enumerate(gangs):
        if places := room.places(wanted):
            given[number] = places[0]
            room.take(wanted.depth, places[0], wanted.pods)
        elif wanted.pods < refused.get(wanted.depth, wanted.pods + 1):
            steps.begin()
            found = _rearranged(room, gangs, given, number, steps)
            if found is not None:
                given = found
            elif steps.spent:
                unknown.add(number)
            else:
                refused[wanted.depth] = wanted.pods
    return Planned(given, frozenset(unknown))


def _rearranged(
    room: DomainRoom, gangs: Sequence[GangSize], given: Mapping[int, int], more: int, steps: SearchSteps
) -> dict[int, int] | None:
    """Return domains for one gang more, with those that have some moved at will; what they take is in ``room``."""
    if room.left[0].sum() < gangs[more].pods:
        return None
    for number, domain in given.items():
        room.take(gangs[number].depth, domain, -gangs[number].pods)
    found: dict[int, int] = {}
    largest_first = sorted([*given, more], key=lambda number: (-gangs[number].pods, gangs[number].depth, number))
    if _search(room, gangs, largest_first, found, steps):
        return found
    for number, domain in given.items():
        room.take(gangs[number].depth, domain, gangs[number].pods)
    return None


def _search(
    room: DomainRoom, gangs: Sequence[GangSize], order: Sequence[int], found: dict[int, int], steps: SearchSteps
) -> bool:
    """Give a domain to each gang in ``order`` after those in ``found``; tell whether all have one."""
    if len(found) == len(order):
        return True
    number = order[len(found)]
    depth, pods = gangs[number]
    for domain in room.places(gangs[number]):
        if not steps.spend():
            return False
        room.take(depth, domain, pods)
        found[number] = domain
        if _search(room, gangs, order, found, steps):
            return True
        del found[number]
        room.take(depth, domain, -pods)
    return False

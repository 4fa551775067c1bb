"""Between queues: whether a job may take from another queue, and whether a set of evictions is just.

Three questions, in the order in which a search asks them, cheapest first:

* :func:`can_reclaim` - is the job's own queue still entitled to what the job asks for?
* :func:`may_be_victim` - could anything at all be taken from that victim's queue?
* :func:`judge` - given everything a scenario would evict, is each eviction covered by a rule, and is nobody who gives
  left with relatively less than the one who takes?

A victim job is given up in *chunks*: each pod it can lose without breaking its gang is a chunk of its own, the core of
the gang is one chunk. The rule is asked before a chunk is taken, so a queue may end below its share by at most a chunk.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from spinney.scheduler.fairshare.amounts import ZERO, Amounts
from spinney.scheduler.fairshare.books import QueueBook, QueueBooks
from spinney.scheduler.fairshare.shares import allocatable_share


class Reclaimer(msgspec.Struct, frozen=True, kw_only=True):
    """Who wants to take: the pending job's queue, what it asks for, and whether it can be preempted itself."""

    queue: str
    request: Amounts
    preemptible: bool = True


class Victims(msgspec.Struct, frozen=True, kw_only=True):
    """What a scenario takes from one leaf queue, chunk by chunk in the order it is taken."""

    queue: str
    chunks: tuple[Amounts, ...]


class Injustice(NamedTuple):
    """Why a scenario is refused, and at which queue."""

    reason: str
    queue: str


def can_reclaim(books: QueueBooks, reclaimer: Reclaimer) -> bool:
    """Tell whether the job's leaf queue stays within its fair share, and within quota if it cannot be preempted."""
    book = books[reclaimer.queue]
    if not (book.allocated + reclaimer.request).within(book.fair_share):
        return False
    return reclaimer.preemptible or (book.allocated_non_preemptible + reclaimer.request).within(book.queue.quota)


def may_be_victim(books: QueueBooks, reclaimer: Reclaimer, victim: str) -> bool:
    """Tell whether the victim's queue could give anything, judged where the two queues' paths part."""
    taking, giving = _parting(books, reclaimer.queue, victim)
    if not (taking.allocated + reclaimer.request).within(taking.queue.quota):
        return not giving.allocated.within(allocatable_share(giving))
    asked = [
        (held, quota)
        for wanted, held, quota in zip(
            reclaimer.request.astuple(), giving.allocated.astuple(), giving.queue.quota.astuple(), strict=True
        )
        if wanted > 0
    ]
    above = any(held > quota >= 0 for held, quota in asked)
    below = any(held < quota for held, quota in asked)  # an unlimited quota says nothing either way
    return above or not below


def judge(
    books: QueueBooks, reclaimer: Reclaimer, victims: Sequence[Victims], *, saturation_multiplier: float = 1.0
) -> Injustice | None:
    """Return why the evictions may not happen, or ``None`` if they may.

    ``books`` are as they were before anything of the scenario was simulated.
    """
    remaining: dict[int, Amounts] = {}
    freed = ZERO
    for taken in victims:
        taking, giving = _parting(books, reclaimer.queue, taken.queue)
        claim = allocatable_share(giving)
        in_quota = (taking.allocated + reclaimer.request).within(taking.queue.quota)
        position = books.tree.index[giving.queue.name]
        for chunk in taken.chunks:
            left = remaining.get(position, giving.allocated)
            if left.within(claim) and (not in_quota or left.within(giving.queue.quota)):
                return Injustice("VictimWithinShare", giving.queue.name)
            freed = freed + chunk
            for ancestor in books.tree.path(taken.queue):
                remaining[ancestor] = remaining.get(ancestor, books.pages[ancestor].allocated) - chunk
    return _judge_levels(books, reclaimer, remaining, freed, saturation_multiplier)


def _judge_levels(
    books: QueueBooks, reclaimer: Reclaimer, remaining: Mapping[int, Amounts], freed: Amounts, multiplier: float
) -> Injustice | None:
    """Go up from the reclaimer's queue; at each level nobody who gave may be left less saturated than who takes."""
    tree = books.tree
    involved = [bool(wanted or free) for wanted, free in zip(reclaimer.request.astuple(), freed.astuple(), strict=True)]
    for position in tree.path(reclaimer.queue):
        book = books.pages[position]
        after = remaining.get(position, book.allocated) + reclaimer.request
        parent = tree.parent[position]
        siblings = tree.roots if parent < 0 else tree.children[parent]
        for sibling in siblings:
            if sibling == position or sibling not in remaining:
                continue
            gives = _Standing(books.pages[sibling], remaining[sibling])
            if _is_less_saturated(gives, _Standing(book, after), involved, multiplier):
                return Injustice("SiblingLessSaturated", gives.book.queue.name)
        if not reclaimer.preemptible:
            held = book.allocated_non_preemptible + reclaimer.request
            if not held.within(book.queue.quota):
                return Injustice("NonPreemptibleOverQuota", book.queue.name)
    return None


class _Standing(NamedTuple):
    """A queue and what it would hold once the scenario has happened."""

    book: QueueBook
    holds: Amounts


def _is_less_saturated(gives: _Standing, takes: _Standing, involved: Sequence[bool], multiplier: float) -> bool:
    figures = zip(
        involved,
        takes.holds.astuple(),
        takes.book.fair_share.astuple(),
        gives.holds.astuple(),
        gives.book.fair_share.astuple(),
        strict=True,
    )
    for counts, held, own_share, kept, share in figures:
        if not counts or share == 0:
            continue
        saturation = _saturation(held, own_share)
        if saturation > 1 and saturation * multiplier >= _saturation(kept, share):
            return True
    return False


def _saturation(allocated: int, fair_share: int) -> float:
    if fair_share < 0:
        return 0.0
    if fair_share == 0:
        return math.inf if allocated > 0 else 0.0
    return allocated / fair_share


def _parting(books: QueueBooks, reclaimer: str, victim: str) -> tuple[QueueBook, QueueBook]:
    taking, giving = books.tree.divergence(reclaimer, victim)
    return books.pages[taking], books.pages[giving]

"""Which of two sibling queues goes first.

For placing, a queue is judged with the request of its next job counted in; for taking back, its dominant share is
computed with the victims already chosen counted out, and the caller reverses the result. The rules in the order in
which they decide:

1. a queue above its fair share in every resource goes after one that is not;
2. a queue that stays within its quota, next job included, goes first;
3. higher queue priority;
4. a queue that would use a resource of which it may claim nothing goes after;
5. smaller dominant share, next job in and victims out;
6. smaller dominant share as things are;
7. smaller claim in every resource;
8. the older queue.

All but rule 7 are about one queue at a time. So a queue's :class:`QueueStanding` is computed once, while what it holds
and wants stays the same, and comparing two is cheap.
"""

from typing import NamedTuple

from spinney.scheduler.fairshare.amounts import ZERO, Amounts
from spinney.scheduler.fairshare.books import QueueBook
from spinney.scheduler.fairshare.shares import allocatable_share, dominant_share, uses_unclaimable


class QueueStanding(NamedTuple):
    """How a queue stands among its siblings: what the rules say about it, in order; smaller goes first."""

    rank: tuple[bool, bool, int, bool, float, float]
    claim: Amounts
    age: tuple[float, str, str]


def standing_of(
    book: QueueBook, total: Amounts, *, following: Amounts = ZERO, victims: Amounts = ZERO
) -> QueueStanding:
    """Return how a queue stands with what its next job asks for counted in and what its victims hold counted out."""
    queue, allocated = book.queue, book.allocated
    claim = allocatable_share(book)
    wanted = allocated + following
    rank = (
        allocated.above_everywhere(book.fair_share),
        not wanted.within(queue.quota),
        -queue.priority,
        uses_unclaimable(wanted, claim),
        dominant_share(wanted - victims, claim, total),
        dominant_share(allocated, claim, total),
    )
    return QueueStanding(rank, claim, queue.age_key)


def compare_standings(left: QueueStanding, right: QueueStanding) -> int:
    """Return -1 if the left queue goes first, 1 if the right one does; 0 only for a queue and itself."""
    if left.rank != right.rank:
        return -1 if left.rank < right.rank else 1
    if left.claim != right.claim:
        if _covers(right.claim, left.claim):
            return -1
        if _covers(left.claim, right.claim):
            return 1
    return (left.age > right.age) - (left.age < right.age)


def _covers(larger: Amounts, smaller: Amounts) -> bool:
    return all(
        bound < 0 or 0 <= amount <= bound for amount, bound in zip(smaller.astuple(), larger.astuple(), strict=True)
    )

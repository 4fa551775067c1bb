"""Which of two sibling queues goes first.

For placing, a queue is judged with the request of its next job counted in; for taking back, with the victims already
chosen from it counted out, and the caller reverses the result. The rules in the order in which they decide:

1. a queue above its fair share in every resource goes after one that is not;
2. a queue that stays within its quota, next job included, goes first;
3. higher queue priority;
4. a queue that would use a resource of which it may claim nothing goes after;
5. smaller dominant share, next job in and victims out;
6. smaller dominant share as things are;
7. smaller claim in every resource;
8. the older queue.
"""

from spinney.scheduler.fairshare.amounts import ZERO, Amounts
from spinney.scheduler.fairshare.books import QueueBook
from spinney.scheduler.fairshare.shares import allocatable_share, dominant_share, uses_unclaimable


def compare_queues(
    left: QueueBook,
    right: QueueBook,
    *,
    total: Amounts,
    left_next: Amounts = ZERO,
    right_next: Amounts = ZERO,
    left_victims: Amounts = ZERO,
    right_victims: Amounts = ZERO,
) -> int:
    """Return -1 if ``left`` goes first, 1 if ``right`` does; 0 only for a queue and itself."""
    if left is right:
        return 0
    first = _first(
        left.allocated.above_everywhere(left.fair_share),
        right.allocated.above_everywhere(right.fair_share),
    )
    if first:
        return first
    first = _first(
        not (left.allocated + left_next).within(left.queue.quota),
        not (right.allocated + right_next).within(right.queue.quota),
    )
    if first:
        return first
    if left.queue.priority != right.queue.priority:
        return -1 if left.queue.priority > right.queue.priority else 1
    left_claim, right_claim = allocatable_share(left), allocatable_share(right)
    left_after = left.allocated + left_next - left_victims
    right_after = right.allocated + right_next - right_victims
    return (
        _first(uses_unclaimable(left_after, left_claim), uses_unclaimable(right_after, right_claim))
        or _first(dominant_share(left_after, left_claim, total), dominant_share(right_after, right_claim, total))
        or _first(
            dominant_share(left.allocated, left_claim, total), dominant_share(right.allocated, right_claim, total)
        )
        or _smaller_claim(left_claim, right_claim)
        or (-1 if left.queue.age_key < right.queue.age_key else 1)
    )


def _first(left: float, right: float) -> int:
    """Prefer the smaller; of two flags, the one that is not raised."""
    return (left > right) - (left < right)


def _smaller_claim(left: Amounts, right: Amounts) -> int:
    if left == right:
        return 0
    if _covers(right, left):
        return -1
    return 1 if _covers(left, right) else 0


def _covers(larger: Amounts, smaller: Amounts) -> bool:
    return all(
        bound < 0 or 0 <= amount <= bound for amount, bound in zip(smaller.astuple(), larger.astuple(), strict=True)
    )

"""The most that reclaim may take, from sums alone: an answer in a few additions that no scenario can beat.

A queue may be taken from while what is left exceeds its bound in at least one resource, asked before each chunk. So in
a resource that alone exceeds, less than the excess and one more chunk can go; and where several exceed, no more chunks
than the resource that lasts longest allows. What no scenario could be allowed to take need not be searched for.
"""

from collections.abc import Callable, Iterable, Mapping

import msgspec

from spinney.scheduler.fairshare.amounts import ZERO, Amounts
from spinney.scheduler.fairshare.books import QueueBook, QueueBooks
from spinney.scheduler.fairshare.reclaim import Reclaimer
from spinney.scheduler.fairshare.shares import allocatable_share


class Lot(msgspec.Struct, frozen=True, kw_only=True):
    """What could be taken from a queue: how much in all, the least a pod holds, the most a job holds."""

    total: Amounts
    smallest: Amounts
    largest: Amounts

    def joined(self, other: "Lot") -> "Lot":
        """Return both lots as one."""
        return Lot(
            total=self.total + other.total,
            smallest=_each(min, self.smallest, other.smallest),
            largest=_each(max, self.largest, other.largest),
        )


def most_reclaimable(books: QueueBooks, reclaimer: Reclaimer, lots: Mapping[str, Lot]) -> Amounts:
    """Return a bound, per resource, on what just scenarios can take for good from ``lots``, by leaf queue."""
    by_giver: dict[int, tuple[int, Lot]] = {}
    for queue, lot in lots.items():
        if queue not in books.tree or queue == reclaimer.queue:
            continue
        taking, giving = books.tree.divergence(reclaimer.queue, queue)
        known = by_giver.get(giving)
        by_giver[giving] = (taking, lot if known is None else known[1].joined(lot))
    most = ZERO
    for giving, (taking, lot) in by_giver.items():
        most = most + _most_from(books.pages[giving], books.pages[taking], reclaimer, lot)
    return most


def least_of(bounds: Iterable[Amounts]) -> Amounts | None:
    """Return the smallest of several bounds in each resource; ``None`` if there are none."""
    least: Amounts | None = None
    for bound in bounds:
        least = bound if least is None else _each(min, least, bound)
    return least


def _most_from(giving: QueueBook, taking: QueueBook, reclaimer: Reclaimer, lot: Lot) -> Amounts:
    bounds = [allocatable_share(giving)]
    if (taking.allocated + reclaimer.request).within(taking.queue.quota):
        bounds.append(giving.queue.quota)
    held = giving.allocated.astuple()
    excess = [
        max((amount - bound for bound in each if 0 <= bound < amount), default=0)
        for amount, *each in zip(held, *(bound.astuple() for bound in bounds), strict=True)
    ]
    exceeding = [resource for resource, amount in enumerate(excess) if amount]
    total, smallest, largest = lot.total.astuple(), lot.smallest.astuple(), lot.largest.astuple()
    most = [0, 0, 0]
    for resource in range(3):
        if exceeding == [resource]:
            most[resource] = excess[resource] - 1 + largest[resource]
        elif exceeding:
            unending = any(smallest[other] <= 0 for other in exceeding)
            chunks = 0 if unending else max(-(-excess[other] // smallest[other]) for other in exceeding)
            most[resource] = total[resource] if unending else chunks * largest[resource]
        most[resource] = min(most[resource], total[resource])
    return Amounts(*most)


def _each(choose: Callable[[int, int], int], left: Amounts, right: Amounts) -> Amounts:
    return Amounts(choose(left.cpu, right.cpu), choose(left.memory, right.memory), choose(left.gpu, right.gpu))

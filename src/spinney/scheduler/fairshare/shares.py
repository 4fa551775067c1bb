"""Quantities derived from a queue's book: what it may come to hold, and how full it is.

The *allocatable share* is the most a queue can claim: its fair share, but never less than its quota nor more than its
limit. The *dominant share* is how much of that it uses, in the resource where it uses most.
"""

from spinney.scheduler.fairshare.amounts import GPU, UNLIMITED, Amounts
from spinney.scheduler.fairshare.books import QueueBook

_USE_OF_NOTHING = 1000.0  # what a unit counts for that is held where nothing may be claimed


def allocatable_share(book: QueueBook) -> Amounts:
    """Return the most the queue can claim of each resource; unlimited where neither quota nor limit bounds it."""
    quota, limit, fair = book.queue.quota, book.queue.limit, book.fair_share
    return Amounts(
        _claim(quota.cpu, limit.cpu, fair.cpu),
        _claim(quota.memory, limit.memory, fair.memory),
        _claim(quota.gpu, limit.gpu, fair.gpu),
    )


def dominant_share(allocated: Amounts, claim: Amounts, total: Amounts) -> float:
    """Return the largest part used of any resource: of ``claim``, or of the cluster where the claim is unlimited."""
    return max(
        _part(allocated.cpu, claim.cpu, total.cpu, 1),
        _part(allocated.memory, claim.memory, total.memory, 1),
        _part(allocated.gpu, claim.gpu, total.gpu, GPU),
    )


def uses_unclaimable(allocated: Amounts, claim: Amounts) -> bool:
    """Tell whether something is used of a resource of which nothing may be claimed."""
    return (
        (claim.cpu == 0 and allocated.cpu > 0)
        or (claim.memory == 0 and allocated.memory > 0)
        or (claim.gpu == 0 and allocated.gpu > 0)
    )


def _claim(quota: int, limit: int, fair: int) -> int:
    if quota < 0:
        return UNLIMITED if limit < 0 else limit
    claim = max(quota, fair)
    return claim if limit < 0 else min(limit, claim)


def _part(allocated: int, claim: int, total: int, unit: int) -> float:
    whole = total if claim < 0 else claim
    if whole <= 0:
        return allocated / unit * _USE_OF_NOTHING
    return allocated / whole

"""What a queue allows: whether a job may be placed as far as its queue is concerned.

Two rules, each checked at the job's queue and at every ancestor: no queue ever exceeds its *limit*, and what is held
by jobs that cannot be preempted never exceeds the *quota*, because nobody could take it back.
"""

from enum import StrEnum

import msgspec

from spinney.explain.reasons import QueueReport
from spinney.scheduler.fairshare.amounts import NAMES, UNITS, Amounts
from spinney.scheduler.fairshare.books import QueueBook, QueueBooks


class CapacityReason(StrEnum):
    """Why a queue refuses, as written in conditions."""

    OVER_LIMIT = "OverLimit"
    NON_PREEMPTIBLE_OVER_QUOTA = "NonPreemptibleOverQuota"


class OverCapacity(msgspec.Struct, frozen=True, kw_only=True):
    """A refusal: which rule, in words, and the queue, the resource and the figures it was decided on."""

    reason: CapacityReason
    message: str
    report: QueueReport


def over_capacity(books: QueueBooks, queue: str, request: Amounts, *, preemptible: bool) -> OverCapacity | None:
    """Return why ``request`` may not be placed in ``queue``, or ``None`` if it may."""
    for position in books.tree.path(queue):
        book = books.pages[position]
        if not (book.allocated + request).within(book.queue.limit):
            return _refusal(CapacityReason.OVER_LIMIT, book, request)
    return None if preemptible else non_preemptible_over_quota(books, queue, request)


def non_preemptible_over_quota(books: QueueBooks, queue: str, request: Amounts) -> OverCapacity | None:
    """Return the refusal of the lowest queue whose quota ``request``, which nobody could take back, would break."""
    for position in books.tree.path(queue):
        book = books.pages[position]
        if not (book.allocated_non_preemptible + request).within(book.queue.quota):
            return _refusal(CapacityReason.NON_PREEMPTIBLE_OVER_QUOTA, book, request)
    return None


def _refusal(reason: CapacityReason, book: QueueBook, request: Amounts) -> OverCapacity:
    over = reason is CapacityReason.OVER_LIMIT
    bound = book.queue.limit if over else book.queue.quota
    used = book.allocated if over else book.allocated_non_preemptible
    column = _first_above(used + request, bound)
    resource, unit = NAMES[column], UNITS[column]
    what = "limit" if over else "quota, which bounds what cannot be preempted,"
    return OverCapacity(
        reason=reason,
        message=(
            f"queue {book.queue.name}: {resource} {what} is {bound.describe()[resource]}, "
            f"in use {used.describe()[resource]}, requested {request.describe()[resource]}"
        ),
        # Reports count whole devices: what is used or asked for of a device counts as the device.
        report=QueueReport(
            queue=book.queue.name,
            rule=reason.value,
            resource=resource,
            bound=bound.astuple()[column] // unit,
            used=-(-used.astuple()[column] // unit),
            requested=-(-request.astuple()[column] // unit),
        ),
    )


def _first_above(amounts: Amounts, bound: Amounts) -> int:
    """Return the resource above ``bound``, GPUs first: they are what people ask about."""
    above = [amount > most >= 0 for amount, most in zip(amounts.astuple(), bound.astuple(), strict=True)]
    return max(column for column, is_above in enumerate(above) if is_above)

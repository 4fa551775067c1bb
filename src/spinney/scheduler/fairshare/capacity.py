"""What a queue allows: whether a job may be placed as far as its queue is concerned.

Two rules, each checked at the job's queue and at every ancestor: no queue ever exceeds its *limit*, and what is held
by jobs that cannot be preempted never exceeds the *quota*, because nobody could take it back. A refusal carries the
figures as data, for the condition on the job and for ``explain``.
"""

from enum import StrEnum

import msgspec

from spinney.scheduler.fairshare.amounts import RESOURCES, ZERO, Amounts
from spinney.scheduler.fairshare.books import QueueBook, QueueBooks


class CapacityReason(StrEnum):
    """Why a queue refuses, as written in conditions."""

    OVER_LIMIT = "OverLimit"
    NON_PREEMPTIBLE_OVER_QUOTA = "NonPreemptibleOverQuota"


class QueueDetails(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The figures behind a refusal."""

    name: str
    queue_requested: Amounts
    queue_deserved: Amounts
    queue_allocated: Amounts
    queue_allocated_non_preemptible: Amounts
    queue_resource_limits: Amounts
    pod_group_requested: Amounts
    pod_group_requested_non_preemptible: Amounts


class OverCapacity(msgspec.Struct, frozen=True, kw_only=True):
    """A refusal: which rule, at which queue, in which resource."""

    reason: CapacityReason
    queue: str
    resource: str
    message: str
    details: QueueDetails


def over_capacity(books: QueueBooks, queue: str, request: Amounts, *, preemptible: bool) -> OverCapacity | None:
    """Return why ``request`` may not be placed in ``queue``, or ``None`` if it may."""
    refusal = over_limit(books, queue, request, preemptible=preemptible)
    if refusal is None and not preemptible:
        refusal = non_preemptible_over_quota(books, queue, request)
    return refusal


def over_limit(books: QueueBooks, queue: str, request: Amounts, *, preemptible: bool) -> OverCapacity | None:
    """Return the lowest queue whose limit ``request`` would break."""
    for position in books.tree.path(queue):
        book = books.pages[position]
        found = _first_above(book.allocated + request, book.queue.limit)
        if found is not None:
            return _refusal(CapacityReason.OVER_LIMIT, book, found, request, preemptible=preemptible)
    return None


def non_preemptible_over_quota(books: QueueBooks, queue: str, request: Amounts) -> OverCapacity | None:
    """Return the lowest queue whose quota ``request``, which nobody could take back, would break."""
    for position in books.tree.path(queue):
        book = books.pages[position]
        found = _first_above(book.allocated_non_preemptible + request, book.queue.quota)
        if found is not None:
            return _refusal(CapacityReason.NON_PREEMPTIBLE_OVER_QUOTA, book, found, request, preemptible=False)
    return None


def _first_above(amounts: Amounts, bound: Amounts) -> str | None:
    """Return the first resource above ``bound``, GPUs first: they are what people ask about."""
    if amounts.within(bound):
        return None
    return next(
        resource for resource in reversed(RESOURCES) if getattr(amounts, resource) > getattr(bound, resource) >= 0
    )


def _refusal(
    reason: CapacityReason, book: QueueBook, resource: str, request: Amounts, *, preemptible: bool
) -> OverCapacity:
    over = reason is CapacityReason.OVER_LIMIT
    bound = book.queue.limit if over else book.queue.quota
    used = book.allocated if over else book.allocated_non_preemptible
    name = "nvidia.com/gpu" if resource == "gpu" else resource
    what = "limit" if over else "quota, which bounds what cannot be preempted,"
    details = QueueDetails(
        name=book.queue.name,
        queue_requested=book.requested,
        queue_deserved=book.queue.quota,
        queue_allocated=book.allocated,
        queue_allocated_non_preemptible=book.allocated_non_preemptible,
        queue_resource_limits=book.queue.limit,
        pod_group_requested=request,
        pod_group_requested_non_preemptible=ZERO if preemptible else request,
    )
    return OverCapacity(
        reason=reason,
        queue=book.queue.name,
        resource=name,
        message=(
            f"queue {book.queue.name}: {name} {what} is {bound.describe()[name]}, "
            f"in use {used.describe()[name]}, requested {request.describe()[name]}"
        ),
        details=details,
    )

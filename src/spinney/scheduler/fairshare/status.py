"""The status of Queue objects, computed from the books."""

from spinney.api.kai import QueueStatus
from spinney.scheduler.fairshare.books import QueueBooks


def queue_statuses(books: QueueBooks) -> dict[str, QueueStatus]:
    """Return the status of every queue by name, parents before children; conditions are their writers' business."""
    tree = books.tree
    return {
        book.queue.name: QueueStatus(
            child_queues=tuple(sorted(tree.queues[child].name for child in tree.children[position])),
            allocated=book.allocated.quantities(),
            allocated_non_preemptible=book.allocated_non_preemptible.quantities(),
            requested=book.requested.quantities(),
        )
        for position, book in enumerate(books.pages)
    }

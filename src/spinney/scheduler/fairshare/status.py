"""The status of Queue objects, computed from the books."""

import msgspec

from spinney.scheduler.fairshare.books import QueueBooks


class QueueStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a Queue object reports: its children, and amounts as Kubernetes resource maps."""

    child_queues: tuple[str, ...]
    allocated: dict[str, str]
    allocated_non_preemptible: dict[str, str]
    requested: dict[str, str]


def queue_statuses(books: QueueBooks) -> dict[str, QueueStatus]:
    """Return the status of every queue by name, parents before children."""
    tree = books.tree
    return {
        book.queue.name: QueueStatus(
            child_queues=tuple(sorted(tree.queues[child].name for child in tree.children[position])),
            allocated=book.allocated.describe(),
            allocated_non_preemptible=book.allocated_non_preemptible.describe(),
            requested=book.requested.describe(),
        )
        for position, book in enumerate(books.pages)
    }

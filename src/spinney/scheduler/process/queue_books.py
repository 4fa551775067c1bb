"""The books of queues as the inventory is now, for statuses and metrics, which are written between cycles.

A session keeps its own books, which move with its decisions (:mod:`spinney.scheduler.plugins.proportion`). What pods
hold is kept per queue by the book of gangs, so books cost the kinds of pods in a queue, not their number.
"""

from spinney.api import kai
from spinney.cluster.dra.book import claims_of
from spinney.cluster.pods import PodRecord
from spinney.scheduler.fairshare import GPU, ZERO, Amounts, QueueBooks, QueueTree
from spinney.scheduler.intake.inventory import Inventory


def live_books(inventory: Inventory, tree: QueueTree, *, total: Amounts = ZERO) -> QueueBooks:
    """Return what the queues of ``tree`` hold and ask for; ``total`` is what there is to divide."""
    books = QueueBooks(tree, total)
    claims = inventory.claims.claims

    def claimed(record: PodRecord) -> Amounts:
        return Amounts(gpu=sum(claims[key].gpus for key in claims_of(record.pod) if key in claims) * GPU)

    books.write_up(inventory.gangs.holdings, inventory.cluster.table)
    if claims:
        books.write_up_claims(inventory.gangs.snapshot().gangs.values(), claimed)
    return books


def queue_statuses(books: QueueBooks) -> dict[str, kai.QueueStatus]:
    """Return the status of every queue by name, parents before children; conditions are their writers' business."""
    tree = books.tree
    return {
        book.queue.name: kai.QueueStatus(
            child_queues=tuple(sorted(tree.queues[child].name for child in tree.children[position])),
            allocated=book.allocated.quantities(),
            allocated_non_preemptible=book.allocated_non_preemptible.quantities(),
            requested=book.requested.quantities(),
        )
        for position, book in enumerate(books.pages)
    }

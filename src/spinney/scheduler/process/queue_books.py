"""The books of queues as the inventory is now, for statuses and metrics, which are written between cycles.

A session keeps its own books, which move with its decisions (:mod:`spinney.scheduler.plugins.proportion`). What pods
hold is kept per queue by the book of gangs, so books cost the kinds of pods in a queue, not their number.
"""

from spinney.api import kai
from spinney.cluster.dra.book import claims_of
from spinney.cluster.statuses import CHARGED, PodStatus
from spinney.gangs.holdings import Holdings
from spinney.scheduler.fairshare.amounts import GPU, ZERO, Amounts
from spinney.scheduler.fairshare.books import QueueBooks
from spinney.scheduler.fairshare.charging import charge_of
from spinney.scheduler.fairshare.queues import QueueTree
from spinney.scheduler.fairshare.totals import device_sizes
from spinney.scheduler.intake.inventory import Inventory


def live_books(inventory: Inventory, tree: QueueTree, *, total: Amounts = ZERO) -> QueueBooks:
    """Return what the queues of ``tree`` hold and ask for; ``total`` is what there is to divide."""
    books = QueueBooks(tree, total)
    table = inventory.cluster.table
    smallest = device_sizes(table).smallest
    for queue, holdings in inventory.gangs.holdings.items():
        if queue in tree:
            _write_up(books, queue, holdings, inventory, smallest)
    if inventory.claims.claims:
        _write_up_claims(books, inventory)
    return books


def _write_up(books: QueueBooks, queue: str, holdings: Holdings, inventory: Inventory, smallest: int) -> None:
    table = inventory.cluster.table
    for kind, count in holdings.items():
        row = table.find(kind.node) if kind.node else None
        memory = smallest if row is None else int(table.gpu_memory[row])
        amounts = charge_of(kind.request, memory).times(count)
        books.request(queue, amounts)
        if kind.charged:
            books.charge(queue, amounts, preemptible=kind.preemptible)


def _write_up_claims(books: QueueBooks, inventory: Inventory) -> None:
    """Post the GPUs that pods hold and want through device claims; the book of gangs counts pods without them."""
    claims = inventory.claims.claims
    for members in inventory.gangs.snapshot().gangs.values():
        gang = members.gang
        if gang.queue not in books.tree:
            continue
        for _, record in members.pods.values():
            gpus = sum(claims[key].gpus for key in claims_of(record.pod) if key in claims)
            if not gpus or (record.status not in CHARGED and record.status is not PodStatus.PENDING):
                continue
            books.request(gang.queue, Amounts(gpu=gpus * GPU))
            if record.status in CHARGED:
                books.charge(gang.queue, Amounts(gpu=gpus * GPU), preemptible=gang.preemptible)


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

"""The books kept about each queue: what it holds, what of that cannot be taken back, what it asks for.

Every entry is posted to the queue named and to all its ancestors. Amounts are whole numbers, so an entry and its
reversal cancel exactly: after any sequence of postings and their reversals, in any order, the books are as before.

The fair share is not a posting but the outcome of :func:`~spinney.scheduler.fairshare.division.divide`, computed once
per cycle from quota, limit, weight and ``requested``; charges during the cycle do not move it.
"""

from collections.abc import Callable, Iterable, Mapping
from copy import copy

from spinney.cluster.pods import PodRecord
from spinney.cluster.statuses import CHARGED, PodStatus
from spinney.cluster.table import NodeTable
from spinney.gangs.book import GangMembers
from spinney.gangs.holdings import Holdings
from spinney.scheduler.fairshare.amounts import NO_BOUND, ZERO, Amounts, charge_of
from spinney.scheduler.fairshare.division import divide
from spinney.scheduler.fairshare.queues import QueueInfo, QueueTree
from spinney.scheduler.fairshare.totals import device_sizes


class QueueBook:
    """The page of one queue; mutable, written only by :class:`QueueBooks`."""

    __slots__ = ("_fair_share", "allocated", "allocated_non_preemptible", "division_due", "queue", "requested")

    def __init__(self, queue: QueueInfo) -> None:
        self.queue = queue
        self.allocated = ZERO
        self.allocated_non_preemptible = ZERO
        self.requested = ZERO
        self._fair_share = ZERO
        self.division_due: Callable[[], None] | None = None
        """Divides the cluster, which is left until a fair share is asked for."""

    @property
    def fair_share(self) -> Amounts:
        """Return the queue's part of the cluster."""
        if self.division_due is not None:
            self.division_due()
        return self._fair_share

    @fair_share.setter
    def fair_share(self, share: Amounts) -> None:
        self._fair_share = share
        self.division_due = None

    def __repr__(self) -> str:
        return (
            f"QueueBook({self.queue.name}: allocated {self.allocated}, non-preemptible "
            f"{self.allocated_non_preemptible}, requested {self.requested}, fair share {self.fair_share})"
        )

    def copy(self) -> "QueueBook":
        """Return a page with the same entries that no longer follows this one."""
        page = QueueBook(self.queue)
        page.allocated = self.allocated
        page.allocated_non_preemptible = self.allocated_non_preemptible
        page.requested = self.requested
        page.fair_share = self.fair_share
        return page


class QueueBooks:
    """One page per queue of a tree, in the tree's order; mutable."""

    def __init__(self, tree: QueueTree, total: Amounts) -> None:
        self.tree = tree
        self.total = total  # what the cluster has
        self.pages: tuple[QueueBook, ...] = tuple(map(QueueBook, tree.queues))
        self._limited: dict[str, bool] = {}
        """Whether queues have a limit, as far as was asked."""

    def __getitem__(self, name: str) -> QueueBook:
        return self.pages[self.tree.index[name]]

    def is_limited(self, queue: str) -> bool:
        """Tell whether the queue or one of its ancestors has a limit."""
        known = self._limited.get(queue)
        if known is None:
            path = self.tree.path(queue)
            known = self._limited[queue] = any(self.tree.queues[each].limit != NO_BOUND for each in path)
        return known

    def charge(self, queue: str, amounts: Amounts, *, preemptible: bool) -> None:
        """Post an allocation to the queue and its ancestors."""
        for position in self.tree.path(queue):
            page = self.pages[position]
            page.allocated = page.allocated + amounts
            if not preemptible:
                page.allocated_non_preemptible = page.allocated_non_preemptible + amounts

    def discharge(self, queue: str, amounts: Amounts, *, preemptible: bool) -> None:
        """Reverse a :meth:`charge`."""
        self.charge(queue, ZERO - amounts, preemptible=preemptible)

    def request(self, queue: str, amounts: Amounts) -> None:
        """Post what a task asks for, placed or not."""
        for position in self.tree.path(queue):
            page = self.pages[position]
            page.requested = page.requested + amounts

    def write_up(self, holdings: Mapping[str, Holdings], table: NodeTable) -> None:
        """Post what pods hold and want, a kind of pod at a time; what is not of a queue of the tree is left out."""
        smallest = device_sizes(table).smallest
        for queue in (each for each in holdings if each in self.tree):
            for kind, count in holdings[queue].items():
                row = table.find(kind.node) if kind.node else None
                memory = smallest if row is None else int(table.gpu_memory[row])
                amounts = charge_of(kind.request, memory).times(count)
                self.request(queue, amounts)
                if kind.charged:
                    self.charge(queue, amounts, preemptible=kind.preemptible)

    def write_up_claims(self, gangs: Iterable[GangMembers], cost: Callable[[PodRecord], Amounts]) -> None:
        """Post what pods hold and want through device claims; the book of gangs counts pods without them."""
        for members in (each for each in gangs if each.gang.queue in self.tree):
            queue = members.gang.queue
            for _, record in members.pods.values():
                charged = record.status in CHARGED
                amounts = cost(record) if charged or record.status is PodStatus.PENDING else ZERO
                if amounts:
                    self.request(queue, amounts)
                if amounts and charged:
                    self.charge(queue, amounts, preemptible=members.gang.preemptible)

    def set_fair_shares(self) -> None:
        """Divide the cluster among the queues by what they request now."""
        tree, pages, total = self.tree, self.pages, self.total
        requested = [page.requested for page in pages]

        def settle() -> None:
            for page, share in zip(pages, divide(tree, requested, total), strict=True):
                page.fair_share = share

        for page in pages:
            page.division_due = settle

    def copy(self) -> "QueueBooks":
        """Return books with the same entries that no longer follow these."""
        books = copy(self)
        books.pages = tuple(page.copy() for page in self.pages)
        return books

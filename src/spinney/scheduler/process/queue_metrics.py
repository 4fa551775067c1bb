"""How queues stand, for Prometheus: what each holds, asks for, is entitled to, and would get as its fair share.

Computed when metrics are read, from the inventory as it is then, so cycles pay nothing for it and a queue that was
deleted is not there any more. What is unlimited has no series. Only the replica that schedules answers: another one
would have everything counted twice.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

import structlog
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from spinney.binding.gang_metrics import LabelValues
from spinney.scheduler.fairshare.amounts import GPU, RESOURCES, Amounts
from spinney.scheduler.fairshare.books import QueueBook
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.process.queue_books import live_books

log = structlog.get_logger()

_LABELS: Final = ("queue", "parent", "resource")
_UNITS: Final = (1000, 1, GPU)
"""What one core, byte and device is, in the order of :data:`RESOURCES`."""
_AMOUNTS: Final[tuple[tuple[str, str, Callable[[QueueBook], Amounts]], ...]] = (
    ("use", "What pods of a queue and of those below it hold", lambda book: book.allocated),
    ("pending", "What pods of a queue and of those below it wait for", lambda book: book.requested - book.allocated),
    ("quota", "What a queue is entitled to", lambda book: book.queue.quota),
    ("limit", "The most a queue may hold", lambda book: book.queue.limit),
    ("fair_share", "A queue's part of the cluster by quota, weight and demand", lambda book: book.fair_share),
)
_UNIT_NOTE: Final = "cpu in cores, memory in bytes, gpu in devices. Top-level queues have an empty parent."


class QueueMetrics(Collector):
    """Answers with the figures of every queue, up to the number that have series of their own."""

    def __init__(self, inventory: Inventory, queues: LabelValues) -> None:
        self._inventory = inventory
        self._labels = queues
        self.active = False
        """Whether this replica schedules."""

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Return the families without samples."""
        for name, meaning, _ in _AMOUNTS:
            yield GaugeMetricFamily(f"spinney_queue_{name}", f"{meaning}; {_UNIT_NOTE}", labels=_LABELS)
        yield GaugeMetricFamily(
            "spinney_queue_pending_gangs", "Gangs of a queue that have pending pods.", labels=("queue",)
        )
        yield GaugeMetricFamily("spinney_queues", "Queues, those without series of their own included.")

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Return the figures as they are now."""
        families = {family.name: family for family in self.describe()}
        if self.active:
            try:
                self._fill(families)
            except Exception:
                log.exception("queues not shown in metrics")  # all other metrics are
        yield from families.values()

    def _fill(self, families: dict[str, GaugeMetricFamily]) -> None:
        gangs = self._inventory.gangs.snapshot()
        tree = self._inventory.queue_tree(gangs)
        books = live_books(self._inventory, tree, total=self._inventory.offered())
        books.set_fair_shares()
        pending = Counter(gangs.gangs[key].gang.queue for key in gangs.pending)
        for book in books.pages:
            name = book.queue.name
            if self._labels.of(name) != name:
                continue
            for kind, _, amounts_of in _AMOUNTS:
                family = families[f"spinney_queue_{kind}"]
                for resource, unit, amount in zip(RESOURCES, _UNITS, amounts_of(book).astuple(), strict=True):
                    if amount >= 0:
                        family.add_metric((name, book.queue.parent or "", resource), amount / unit)
            families["spinney_queue_pending_gangs"].add_metric((name,), pending[name])
        families["spinney_queues"].add_metric((), len(books.pages))

"""What the admission of suspended workloads tells Prometheus."""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge

from spinney.binding.gang_metrics import MOST_QUEUES, OTHER_QUEUES, LabelValues


class QueueingMetrics:
    """Counters and gauges of suspended workloads."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._waiting = Gauge(
            "spinney_suspended_workloads", "Suspended workloads that wait in queues.", ["queue"], registry=registry
        )
        self._queues = LabelValues(MOST_QUEUES, other=OTHER_QUEUES)
        self.resumed = Counter(
            "spinney_suspended_workloads_resumed",
            "Suspended workloads that were resumed because their gang had room.",
            registry=registry,
        )

    def wait(self, lengths: Mapping[str, int]) -> None:
        """Say how many wait in each queue."""
        self._waiting.clear()
        for queue, length in lengths.items():
            self._waiting.labels(self._queues.of(queue)).inc(length)

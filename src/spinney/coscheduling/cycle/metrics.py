"""What the coscheduler counts, for ``/metrics``."""

from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from spinney.binding.gang_metrics import GangMetrics
from spinney.coscheduling.cycle.queue import SchedulingQueue

NO_QUEUE: Final = ""
"""The coscheduler knows no queues."""


class CoschedulingMetrics:
    """Counters and gauges of one coscheduler."""

    def __init__(self, registry: CollectorRegistry) -> None:
        attempts = Counter(
            "spinney_coscheduler_attempts",
            "Scheduling cycles by result: placed, refused, or failed by an error.",
            ["result"],
            registry=registry,
        )
        self.placed, self.refused, self.failed = (attempts.labels(each) for each in ("placed", "refused", "failed"))
        self.plugin_failures = Counter(
            "spinney_coscheduler_plugin_failures",
            "How often plugins raised or gave no proper answer, by plugin and extension point.",
            ["plugin", "point"],
            registry=registry,
        )
        self.slow_answers = Counter(
            "spinney_coscheduler_slow_plugin_answers",
            "How often plugins took over a second in a scheduling cycle, by plugin and extension point.",
            ["plugin", "point"],
            registry=registry,
        )
        self.gangs = GangMetrics(registry)
        self.groups_rejected = Counter(
            "spinney_coscheduler_groups_rejected", "Groups given up as a whole, to be tried again.", registry=registry
        )
        self._refusals = _Refusals()
        registry.register(self._refusals)
        self._pods = Gauge(
            "spinney_coscheduler_pods",
            "Pods by place: active, backoff, unschedulable, in_flight, waiting (at Permit).",
            ["place"],
            registry=registry,
        )

    def watch(self, queue: SchedulingQueue, waiting: Callable[[], int]) -> None:
        """Have gauges show where pods are, and who refuses them, whenever they are read."""
        for place in queue.counts:
            self._pods.labels(place).set_function(lambda place=place: queue.counts[place])  # type: ignore[misc]
        self._pods.labels("waiting").set_function(waiting)
        self._refusals.queue = queue

    def preempted(self, pods: int) -> None:
        """Count pods that are taken away for others of higher priority."""
        self.gangs.evicted(pods, queue=NO_QUEUE, reason="preempt")

    def relocated(self, pods: int) -> None:
        """Count pods of broken groups that are moved whole."""
        self.gangs.evicted(pods, queue=NO_QUEUE, reason="relocation")

    def started(self, seconds: float, *, pods: int) -> None:
        """Count a group, or a pod without one, that was bound after so long."""
        self.gangs.waited(seconds, queue=NO_QUEUE, pods=pods)


class _Refusals(Collector):
    """Pods that wait for something to change, by the plugin that refused them."""

    def __init__(self) -> None:
        self.queue: SchedulingQueue | None = None

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Return the family without samples."""
        yield GaugeMetricFamily(
            "spinney_coscheduler_unschedulable_pods",
            "Pods that wait for something to change, by the plugin that refused them; one may be refused by several.",
            labels=("plugin",),
        )

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Return the numbers as they are now."""
        for family in self.describe():
            for plugin, pods in self.queue.refused_by().items() if self.queue is not None else ():
                family.add_metric((plugin,), pods)
            yield family

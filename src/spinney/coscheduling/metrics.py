"""What the coscheduler counts, for ``/metrics``."""

from collections.abc import Callable, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge


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
        self.preempted = Counter(
            "spinney_coscheduler_preempted", "Pods taken away for others of higher priority.", registry=registry
        )
        self.groups_rejected = Counter(
            "spinney_coscheduler_groups_rejected", "Groups given up as a whole, to be tried again.", registry=registry
        )
        self._pods = Gauge(
            "spinney_coscheduler_pods",
            "Pods by place: active, backoff, unschedulable, in_flight, waiting (at Permit).",
            ["place"],
            registry=registry,
        )

    def watch(self, counts: Callable[[], Mapping[str, int]], waiting: Callable[[], int]) -> None:
        """Have the gauge show where pods are whenever it is read."""
        for place in counts():
            self._pods.labels(place).set_function(lambda place=place: counts()[place])  # type: ignore[misc]
        self._pods.labels("waiting").set_function(waiting)

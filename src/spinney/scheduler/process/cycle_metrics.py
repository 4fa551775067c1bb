"""What the session scheduler tells Prometheus: cycles, their parts, and what became of decisions."""

import collections
from functools import partial
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from spinney.binding.gang_metrics import GangMetrics, LabelValues
from spinney.scheduler.framework.results import CycleResult

MOST_CAUSES: Final = 50
"""Plugins may give reasons of their own; more than these are counted as `Other`."""
_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class CycleMetrics:
    """Counters and gauges of one scheduler; labels are plugin and hook names, never pods or gangs."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        registry = self.registry = registry if registry is not None else CollectorRegistry()
        counter = partial(Counter, registry=registry)
        self.cycle_seconds = Histogram(
            "spinney_scheduling_cycle_seconds", "How long a cycle took to decide.", buckets=_SECONDS, registry=registry
        )
        self.hook_seconds = counter(
            "spinney_scheduling_hook_seconds",
            "Time spent in cycles, by plugin and extension point; actions count as plugin `action`.",
            ["plugin", "hook"],
        )
        self.failures = counter(
            "spinney_scheduling_plugin_failures",
            "How often plugins raised or gave no proper answer, so that they were taken to say no.",
            ["plugin", "hook"],
        )
        self.errors = counter(
            "spinney_scheduling_gang_errors",
            "How often looking at a gang failed, so that it was set back, by what was being done.",
            ["doing"],
        )
        self.decisions = counter(
            "spinney_scheduling_decisions", "Pods by what a cycle decided (bind, evict, pipeline).", ["decision"]
        )
        self.outdated = counter(
            "spinney_scheduling_outdated_gangs", "Gangs whose decision no longer held when the cycle ended."
        )
        binds = counter("spinney_scheduling_binds", "Pods by outcome of their bind (bound, failed).", ["outcome"])
        self.bound = binds.labels("bound")
        self.refused = binds.labels("failed")
        self._unschedulable = Gauge(
            "spinney_scheduling_unschedulable_gangs",
            "Gangs the last cycle could not place, by reason: the filter that keeps most nodes from a pod that fits "
            "nowhere, else a word such as OverLimit, TopologyConstraint or PodSchedulingErrors (its pods do not fit "
            "together).",
            ["reason"],
            registry=registry,
        )
        self._causes = LabelValues(MOST_CAUSES, other="Other")
        self.gangs = GangMetrics(registry)
        self.released = counter(
            "spinney_scheduling_released_gangs",
            "Gangs that stayed part-bound and were released by evicting what was bound.",
        )

    def cycle(self, result: CycleResult, seconds: float) -> None:
        """Count one cycle."""
        self.cycle_seconds.observe(seconds)
        for (plugin, hook), spent in result.seconds.items():
            self.hook_seconds.labels(plugin, hook).inc(spent)
        for (plugin, hook), times in result.failures.items():
            self.failures.labels(plugin, hook).inc(times)
        for doing, times in result.errors.items():
            self.errors.labels(doing).inc(times)
        self.decisions.labels("bind").inc(len(result.binds))
        self.decisions.labels("evict").inc(len(result.evictions))
        self.decisions.labels("pipeline").inc(len(result.pipelines))
        refused = collections.Counter(self._causes.of(each.cause) for each in result.unschedulable)
        self._unschedulable.clear()
        for cause in (*self._causes, *refused):  # a cause that was there stays, as zero
            self._unschedulable.labels(cause).set(refused[cause])

    def stopped(self) -> None:
        """Say nothing about gangs that wait: another replica schedules them now."""
        self._unschedulable.clear()

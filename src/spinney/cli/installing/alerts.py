"""What is worth an alert in every installation."""

from dataclasses import dataclass
from typing import Final

from spinney.api.struct import JSON


@dataclass(frozen=True)
class Alert:
    """A rule for Prometheus; ``means`` explains it to the person on call."""

    name: str
    expression: str
    means: str
    lasting: str = "0m"

    def rule(self) -> JSON:
        """Return it as a rule of a PrometheusRule."""
        return {
            "alert": self.name,
            "expr": self.expression,
            "for": self.lasting,
            "labels": {"severity": "warning"},
            "annotations": {"summary": self.means},
        }


ALERTS: Final = (
    Alert(
        "SpinneyNobodyLeads",
        "sum by (lease) (spinney_leading) == 0",
        "nobody leads: replicas run, and none of them can get or renew the lease",
        "1m",
    ),
    Alert(
        "SpinneyNotScraped",
        "absent(spinney_watch_events_total)",
        "no process of Spinney runs, or Prometheus does not reach any",
        "5m",
    ),
    Alert(
        "SpinneyRoundsFail",
        "max by (loop) (spinney_failed_rounds_in_a_row) > 3",
        "scheduling cycles fail as a whole; the log names the reason",
        "5m",
    ),
    Alert(
        "SpinneyResyncRepaired",
        "increase(spinney_resync_repairs_total[1h]) > 0",
        "the safety net repaired something that an event should have; please report it with the log",
    ),
    Alert(
        "SpinneyQueueDeep",
        "spinney_workqueue_depth > 100",
        "the operator cannot keep up: API server slow, or a backend failing (look for SyncFailed events)",
        "10m",
    ),
    Alert(
        "SpinneyReconcilesFail",
        'rate(spinney_reconciles_total{result="failed"}[10m]) > 0.1',
        "something fails again and again; the log names it",
        "15m",
    ),
    Alert(
        "SpinneyCyclesSlow",
        "histogram_quantile(0.99, sum by (le) (rate(spinney_scheduling_cycle_seconds_bucket[10m]))) > 5",
        "cycles take long; spinney_scheduling_hook_seconds_total says in which plugin",
        "15m",
    ),
    Alert(
        "SpinneyBindsFail",
        'sum by (job) (increase(spinney_bind_seconds_count{outcome="failed"}[15m])) > 0',
        "binds are refused: another scheduler serves the same name?",
        "15m",
    ),
    Alert(
        "SpinneyPluginsFail",
        "sum by (plugin) (increase(spinney_scheduling_plugin_failures_total[15m])) > 0 "
        "or sum by (plugin) (increase(spinney_coscheduler_plugin_failures_total[15m])) > 0",
        "a plugin fails and is taken to say no, so pods wait; the log names what it raised",
        "15m",
    ),
    Alert(
        "SpinneyGangsWait",
        "max by (reason) (spinney_scheduling_unschedulable_gangs) > 0",
        "gangs wait; `spinney why` says for what",
        "30m",
    ),
    Alert(
        "SpinneyQueueBelowQuota",
        'spinney_queue_pending{resource="gpu"} > 0 '
        'and on (queue) spinney_queue_use{resource="gpu"} < spinney_queue_quota{resource="gpu"}',
        "a queue waits for GPUs although it holds less than its quota: the room is taken, fragmented or not ready",
        "30m",
    ),
    Alert(
        "SpinneyApiServerOverloaded",
        "sum by (job) (rate(spinney_api_retries_total[10m])) > 1",
        "requests are sent again and again: the API server is overloaded or out of reach",
        "15m",
    ),
    Alert(
        "SpinneyObjectsUndecodable",
        "increase(spinney_undecodable_objects_total[1h]) > 0",
        "objects of an unexpected shape: an older or newer CRD is installed",
    ),
)


def groups() -> list[JSON]:
    """Return the rules as Prometheus groups them."""
    return [{"name": "spinney", "rules": [alert.rule() for alert in ALERTS]}]

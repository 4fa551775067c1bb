"""What is worth an alert in every installation."""

from dataclasses import dataclass
from typing import Final

from spinney.api.struct import JSON


@dataclass(frozen=True)
class Alert:
    """A rule for Prometheus; ``means`` is what it says to whoever is called."""

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
        "sum(spinney_leading) by (lease) == 0",
        "nobody leads: no replica runs, or none can renew its lease",
        "1m",
    ),
    Alert(
        "SpinneyResyncRepaired",
        "increase(spinney_resync_repairs_total[1h]) > 0",
        "the safety net repaired something that an event should have; please report it with the log",
    ),
    Alert(
        "SpinneyQueueDeep",
        "spinney_queue_depth > 100",
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
        "histogram_quantile(0.99, rate(spinney_scheduling_cycle_seconds_bucket[10m])) > 5",
        "cycles take long; spinney_scheduling_hook_seconds_total says in which plugin",
        "15m",
    ),
    Alert(
        "SpinneyBindsFail",
        'increase(spinney_scheduling_binds_total{outcome="failed"}[15m]) > 0',
        "binds are refused: another scheduler serves the same name?",
        "15m",
    ),
    Alert(
        "SpinneyGangsWait",
        "spinney_scheduling_unschedulable_gangs > 0",
        "gangs wait; `spinney why` says for what",
        "30m",
    ),
    Alert(
        "SpinneyObjectsUndecodable",
        "increase(spinney_undecodable_objects_total[1h]) > 0",
        "objects of an unexpected shape: an older or newer CRD is installed",
    ),
)

"""The Grafana dashboard: who has what, who waits and why, who was disturbed, and whether the processes are well.

Only the replica that leads exports gauges of queues; counters of all replicas are summed. ``$resource`` and ``$queue``
are chosen on the page.
"""

import json
from typing import Final

from spinney.api.struct import JSON
from spinney.cli.installing.panels import Panel, PanelRow, Query, drawn

UID: Final = "spinney"
DASHBOARD_FILE: Final = "dashboards/spinney.json"
"""Where it is in the chart."""
_RATE: Final = "$__rate_interval"
_OF_QUEUE: Final = '{queue=~"$queue", resource="$resource"}'


def _quantile(part: float, metric: str, by: str = "", selector: str = "") -> str:
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({part}, sum by ({labels}) (rate({metric}_bucket{selector}[{_RATE}])))"


def _rate(metric: str, by: str, selector: str = "") -> str:
    return f"sum by ({by}) (rate({metric}{selector}[{_RATE}]))"


ROWS: Final = (
    PanelRow(
        "At a glance",
        (
            Panel(
                title="In use",
                means="What pods of all queues hold of the chosen resource.",
                queries=(Query('sum(spinney_queue_use{parent="", resource="$resource"})'),),
                kind="stat",
                width=4,
                height=4,
            ),
            Panel(
                title="Asked for, not placed",
                means="What pending pods of all queues ask for of the chosen resource.",
                queries=(Query('sum(spinney_queue_pending{parent="", resource="$resource"})'),),
                kind="stat",
                width=4,
                height=4,
            ),
            Panel(
                title="Gangs that wait",
                means="Gangs with pending pods, over all queues.",
                queries=(Query("sum(spinney_queue_pending_gangs)"),),
                kind="stat",
                width=4,
                height=4,
            ),
            Panel(
                title="Gangs that fit nowhere",
                means="Gangs the last cycle could not place. `spinney why` says what each needs.",
                queries=(Query("sum(spinney_scheduling_unschedulable_gangs)"),),
                kind="stat",
                width=4,
                height=4,
            ),
            Panel(
                title="Wait, 9 of 10 gangs",
                means="Nine of ten gangs placed in the last hour waited no longer than this.",
                queries=(
                    Query("histogram_quantile(0.9, sum by (le) (rate(spinney_gang_wait_seconds_bucket[1h])))", "wait"),
                ),
                kind="stat",
                unit="s",
                width=4,
                height=4,
            ),
            Panel(
                title="Processes that lead",
                means="One of each kind should lead at any time.",
                queries=(Query("sum by (lease) (spinney_leading)", "{{lease}}"),),
                kind="stat",
                width=4,
                height=4,
            ),
        ),
    ),
    PanelRow(
        "Queues",
        (
            Panel(
                title="Use by top-level queue",
                means="What each top-level queue holds, with everything below it.",
                queries=(Query('max by (queue) (spinney_queue_use{parent="", resource="$resource"})', "{{queue}}"),),
                stacked=True,
                width=12,
            ),
            Panel(
                title="Pending by top-level queue",
                means="What pods of each top-level queue wait for.",
                queries=(
                    Query('max by (queue) (spinney_queue_pending{parent="", resource="$resource"})', "{{queue}}"),
                ),
                stacked=True,
                width=12,
            ),
            Panel(
                title="Queues now",
                means="What each queue holds and waits for, beside quota, limit and fair share. Unlimited is empty.",
                queries=(
                    Query(f"max by (queue, parent) (spinney_queue_use{_OF_QUEUE})", "use"),
                    Query(f"max by (queue, parent) (spinney_queue_pending{_OF_QUEUE})", "pending"),
                    Query(f"max by (queue, parent) (spinney_queue_quota{_OF_QUEUE})", "quota"),
                    Query(f"max by (queue, parent) (spinney_queue_limit{_OF_QUEUE})", "limit"),
                    Query(f"max by (queue, parent) (spinney_queue_fair_share{_OF_QUEUE})", "fair share"),
                ),
                kind="table",
                width=12,
            ),
            Panel(
                title="Use beside fair share",
                means="A queue above its share may lose what it holds to one below.",
                queries=(
                    Query(f"max by (queue) (spinney_queue_use{_OF_QUEUE})", "{{queue}} uses"),
                    Query(f"max by (queue) (spinney_queue_fair_share{_OF_QUEUE})", "{{queue}} share"),
                ),
                width=12,
            ),
        ),
    ),
    PanelRow(
        "Waiting",
        (
            Panel(
                title="Wait by size of the gang, 9 of 10",
                means="Large gangs wait longest where the cluster is fragmented.",
                queries=(Query(_quantile(0.9, "spinney_gang_wait_seconds", "size"), "{{size}} pods"),),
                unit="s",
            ),
            Panel(
                title="Wait by queue, half of them",
                means="Half of the gangs of a queue waited no longer than this.",
                queries=(
                    Query(
                        _quantile(0.5, "spinney_gang_wait_seconds", "queue", '{queue=~"$queue"}'),
                        "{{queue}}",
                    ),
                ),
                unit="s",
            ),
            Panel(
                title="Gangs that wait, by queue",
                means="Gangs with pending pods.",
                queries=(Query('max by (queue) (spinney_queue_pending_gangs{queue=~"$queue"})', "{{queue}}"),),
                stacked=True,
            ),
            Panel(
                title="Why gangs are not placed",
                means="By reason: the filter that keeps most nodes from a pod that fits nowhere, or the rule.",
                queries=(
                    Query("max by (reason) (spinney_scheduling_unschedulable_gangs)", "{{reason}}"),
                    Query("max by (plugin) (spinney_coscheduler_unschedulable_pods)", "pods: {{plugin}}"),
                ),
                stacked=True,
            ),
            Panel(
                title="Gangs placed per minute",
                means="Gangs that got their nodes, by size.",
                queries=(Query(f"60 * {_rate('spinney_gang_wait_seconds_count', 'size')}", "{{size}} pods"),),
            ),
            Panel(
                title="Where the coscheduler's pods are",
                means="Pods that are tried, rest, wait for something to change, or wait for their group.",
                queries=(Query("max by (place) (spinney_coscheduler_pods)", "{{place}}"),),
                stacked=True,
            ),
        ),
    ),
    PanelRow(
        "Disruption",
        (
            Panel(
                title="Victims by reason, per minute",
                means="Pods that were evicted, by the action that asked for it.",
                queries=(Query(f"60 * {_rate('spinney_victims_total', 'reason')}", "{{reason}}"),),
                stacked=True,
                width=12,
            ),
            Panel(
                title="Victims by queue, per minute",
                means="Pods that were evicted, by their own queue.",
                queries=(Query(f"60 * {_rate('spinney_victims_total', 'queue')}", "{{queue}}"),),
                stacked=True,
                width=12,
            ),
            Panel(
                title="Gangs asked to checkpoint, per minute",
                means="Gangs that were asked before their eviction, were ready, had their time run out, or may stay.",
                queries=(Query(f"60 * {_rate('spinney_checkpoint_requests_total', 'outcome')}", "{{outcome}}"),),
                width=12,
            ),
            Panel(
                title="GPUs whose work is lost",
                means="Work that evicted pods of the session scheduler lost since their start or last checkpoint: GPU "
                "seconds a second, by the action that asked for it.",
                queries=(Query(_rate("spinney_lost_gpu_seconds_total", "reason"), "{{reason}}"),),
                stacked=True,
                width=12,
            ),
        ),
    ),
    PanelRow(
        "Scheduling",
        (
            Panel(
                title="Cycle time",
                means="How long the session scheduler takes to decide.",
                queries=(
                    Query(_quantile(0.5, "spinney_scheduling_cycle_seconds"), "half"),
                    Query(_quantile(0.99, "spinney_scheduling_cycle_seconds"), "99 of 100"),
                ),
                unit="s",
            ),
            Panel(
                title="Time in plugins and actions",
                means="Seconds per second, the five that take most.",
                queries=(
                    Query(
                        f"topk(5, {_rate('spinney_scheduling_hook_seconds_total', 'plugin, hook')})",
                        "{{plugin}} {{hook}}",
                    ),
                ),
                unit="percentunit",
                stacked=True,
            ),
            Panel(
                title="Bind time",
                means="From the decision until all pods of a gang are bound, volumes and devices included.",
                queries=(
                    Query(_quantile(0.5, "spinney_bind_seconds"), "half"),
                    Query(_quantile(0.99, "spinney_bind_seconds"), "99 of 100"),
                ),
                unit="s",
            ),
            Panel(
                title="Binds",
                means="Binds per second by outcome; those that failed are tried again.",
                queries=(Query(_rate("spinney_bind_seconds_count", "outcome"), "{{outcome}}"),),
                unit="ops",
            ),
            Panel(
                title="Decisions that did not hold",
                means="Gangs whose nodes changed meanwhile, and gangs that were released after they stayed part-bound.",
                queries=(
                    Query(f"sum(rate(spinney_scheduling_outdated_gangs_total[{_RATE}]))", "outdated"),
                    Query(f"sum(rate(spinney_scheduling_released_gangs_total[{_RATE}]))", "released"),
                ),
                unit="ops",
            ),
            Panel(
                title="Failures of plugins",
                means="A plugin that fails is taken to say no.",
                queries=(
                    Query(_rate("spinney_scheduling_plugin_failures_total", "plugin"), "{{plugin}}"),
                    Query(_rate("spinney_coscheduler_plugin_failures_total", "plugin"), "coscheduler: {{plugin}}"),
                ),
                unit="ops",
            ),
        ),
    ),
    PanelRow(
        "Gangs of any workload",
        (
            Panel(
                title="Gangs made per minute, by kind",
                means="PodGangs that the grouper made, by kind of workload.",
                queries=(Query(f"60 * {_rate('spinney_grouper_gangs_made_total', 'kind')}", "{{kind}}"),),
                stacked=True,
            ),
            Panel(
                title="Pods per minute, grouped or left alone",
                means="Pods that were labelled with their gang, and pods that named another controller's group.",
                queries=(
                    Query(f"60 * sum(rate(spinney_grouper_pods_grouped_total[{_RATE}]))", "grouped"),
                    Query(f"60 * {_rate('spinney_grouper_foreign_pods_total', 'group')}", "left to {{group}}"),
                ),
            ),
            Panel(
                title="Rules that could not be applied, per minute",
                means="The pod says why in an event, GroupingRefused.",
                queries=(Query(f"60 * {_rate('spinney_grouper_refusals_total', 'kind')}", "{{kind}}"),),
            ),
        ),
    ),
    PanelRow(
        "API server and processes",
        (
            Panel(
                title="Requests",
                means="Requests to the API server by process and verb.",
                queries=(Query(_rate("spinney_api_requests_total", "job, verb"), "{{job}} {{verb}}"),),
                unit="reqps",
            ),
            Panel(
                title="Requests that failed or were sent again",
                means="Answers of 429 and 5xx, broken connections, and retries.",
                queries=(
                    Query(
                        _rate("spinney_api_requests_total", "job, code", '{code=~"429|5..|refused|failed"}'),
                        "{{job}} {{code}}",
                    ),
                    Query(_rate("spinney_api_retries_total", "job"), "{{job}} retries"),
                ),
                unit="reqps",
            ),
            Panel(
                title="Time to answer, 99 of 100",
                means="How long the API server takes, by verb.",
                queries=(Query(_quantile(0.99, "spinney_api_request_seconds", "verb"), "{{verb}}"),),
                unit="s",
            ),
            Panel(
                title="Keys that wait for a reconcile",
                means="A queue that stays deep means that a controller cannot keep up.",
                queries=(Query("sum by (controller) (spinney_workqueue_depth)", "{{controller}}"),),
            ),
            Panel(
                title="Reconciles that failed",
                means="The log names the object and the reason.",
                queries=(
                    Query(_rate("spinney_reconciles_total", "controller", '{result="failed"}'), "{{controller}}"),
                ),
                unit="ops",
            ),
            Panel(
                title="Lease renewals, lateness of 99 of 100",
                means="A renewal that is late by more than the renew deadline costs the lease.",
                queries=(Query(_quantile(0.99, "spinney_lease_renewal_seconds", "lease"), "{{lease}}"),),
                unit="s",
            ),
        ),
    ),
)


def dashboard() -> JSON:
    """Return the dashboard as Grafana imports it."""
    return {
        "uid": UID,
        "title": "Spinney",
        "description": "Gang scheduling: queues, waiting gangs, victims, and the processes. Generated by `make docs`.",
        "tags": ["spinney", "kubernetes", "scheduling"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": _variables()},
        "panels": drawn(ROWS),
    }


def dashboard_text() -> str:
    """Return the dashboard as the text of a file."""
    return json.dumps(dashboard(), indent=2) + "\n"


def _variables() -> list[JSON]:
    source = {"type": "prometheus", "uid": "${datasource}"}
    return [
        {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"},
        {
            "name": "resource",
            "label": "Resource",
            "type": "custom",
            "query": "gpu,cpu,memory",
            "current": {"text": "gpu", "value": "gpu"},
        },
        {
            "name": "queue",
            "label": "Queue",
            "type": "query",
            "datasource": source,
            "query": {"query": "label_values(spinney_queue_use, queue)", "refId": "queues"},
            "multi": True,
            "includeAll": True,
            "allValue": ".*",
            "current": {"text": "All", "value": "$__all"},
            "refresh": 2,
        },
    ]

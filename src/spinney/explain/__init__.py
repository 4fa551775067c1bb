"""Why something is pending: reasons as data, and how they read.

This room knows no scheduler. A scheduler hands over the masks of its filters and tables of its topology domains;
:mod:`~spinney.explain.counting` and :mod:`~spinney.explain.domains` turn them into :mod:`~spinney.explain.reasons`, and
:mod:`~spinney.explain.rendering` writes those as text, a condition or an event.
"""

from spinney.cluster.fitting import Demand
from spinney.explain.counting import NodeNames, Room, pod_report
from spinney.explain.domains import DomainTable, domain_reports, nearest_miss
from spinney.explain.reasons import (
    DomainReport,
    Explanation,
    FilterReport,
    Obstacle,
    PodReport,
    QueueReport,
    ReasonCount,
    ScenarioCount,
    Shortage,
    VictimReport,
)
from spinney.explain.rendering import (
    as_text,
    condition_message,
    event_message,
    kube_message,
)

__all__ = [
    "Demand",
    "DomainReport",
    "DomainTable",
    "Explanation",
    "FilterReport",
    "NodeNames",
    "Obstacle",
    "PodReport",
    "QueueReport",
    "ReasonCount",
    "Room",
    "ScenarioCount",
    "Shortage",
    "VictimReport",
    "as_text",
    "condition_message",
    "domain_reports",
    "event_message",
    "kube_message",
    "nearest_miss",
    "pod_report",
]

"""The scheduling framework: extension points, their statuses, and the profile that orders plugins at each point."""

from spinney.coscheduling.framework.events import Action, ClusterEvent, EventHint
from spinney.coscheduling.framework.points import (
    Bind,
    CycleState,
    Filter,
    FrameworkPlugin,
    Permit,
    PostBind,
    PostFilter,
    PostFilterResult,
    PreBind,
    PreEnqueue,
    PreFilter,
    QueuedPod,
    QueueSort,
    Reserve,
    Score,
)
from spinney.coscheduling.framework.status import SUCCESS, Code, Status

__all__ = [
    "SUCCESS",
    "Action",
    "Bind",
    "ClusterEvent",
    "Code",
    "CycleState",
    "EventHint",
    "Filter",
    "FrameworkPlugin",
    "Permit",
    "PostBind",
    "PostFilter",
    "PostFilterResult",
    "PreBind",
    "PreEnqueue",
    "PreFilter",
    "QueueSort",
    "QueuedPod",
    "Reserve",
    "Score",
    "Status",
]

"""The scheduling framework: extension points, their statuses, and the profile that orders plugins at each point."""

from spinney.coscheduling.framework.events import Action, ClusterEvent, EventHint, room_freed
from spinney.coscheduling.framework.handle import Handle, Services
from spinney.coscheduling.framework.points import (
    Bind,
    CycleState,
    Filter,
    FrameworkPlugin,
    NodeFilter,
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
    StateKey,
)
from spinney.coscheduling.framework.profile import InvalidProfile, Profile, Rules
from spinney.coscheduling.framework.registry import FrameworkRegistry
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
    "FrameworkRegistry",
    "Handle",
    "InvalidProfile",
    "NodeFilter",
    "Permit",
    "PostBind",
    "PostFilter",
    "PostFilterResult",
    "PreBind",
    "PreEnqueue",
    "PreFilter",
    "Profile",
    "QueueSort",
    "QueuedPod",
    "Reserve",
    "Rules",
    "Score",
    "Services",
    "StateKey",
    "Status",
    "room_freed",
]

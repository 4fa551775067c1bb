"""The condition by which groups of pods say that they are scheduled, or why not, for every kind that has one.

Of Kubernetes' own groups it stays True once it is, for there it is history, not health, as kube-scheduler keeps it; of
scheduler-plugins' groups it follows what is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from spinney.api import coscheduling, workload_v1alpha2, workload_v1beta1
from spinney.api.conditions import find_condition, is_true, set_condition
from spinney.api.meta import Condition, ConditionStatus
from spinney.api.resource import Resource
from spinney.api.struct import JSON, to_json
from spinney.gangs.sources import coscheduling as coscheduling_source
from spinney.gangs.sources import native


@dataclass(frozen=True, slots=True)
class GroupKind:
    """A kind of group with a status: what it is decoded as, the condition it has, and where its gangs come from."""

    type: type[Any]
    condition: str
    source: str
    native: bool
    """Whether it is Kubernetes' own, whose condition stays True once it is, and which gets no events."""


GROUP_KINDS: Final[Mapping[Resource, GroupKind]] = {
    coscheduling.POD_GROUP: GroupKind(
        coscheduling.PodGroup, coscheduling.SCHEDULED, coscheduling_source.SOURCE, native=False
    ),
    workload_v1alpha2.POD_GROUP: GroupKind(
        workload_v1alpha2.PodGroup, workload_v1alpha2.SCHEDULED, native.SOURCE, native=True
    ),
    workload_v1beta1.POD_GROUP: GroupKind(
        workload_v1beta1.PodGroup, workload_v1beta1.INITIALLY_SCHEDULED, native.SOURCE, native=True
    ),
}
"""The kinds of group whose status a scheduler writes to; an API server serves at most one of Kubernetes' own."""


def settled(kind: GroupKind, group: Any) -> bool:
    """Return whether nothing will ever be said of a group again."""
    return kind.native and is_true(group.status.conditions, kind.condition)


def scheduled_patch(kind: GroupKind, group: Any, *, scheduled: bool, reason: str, message: str, now: datetime) -> JSON:
    """Return the patch of a group's status that says so, for the version at hand; empty if it says so already."""
    was = find_condition(group.status.conditions, kind.condition)
    status: ConditionStatus = "True" if scheduled else "False"
    if settled(kind, group) or (was is not None and (was.status, was.message) == (status, message)):
        return {}
    condition = Condition(type=kind.condition, status=status, reason=reason, message=message)
    return {
        "metadata": {"resourceVersion": group.metadata.resource_version},
        "status": {"conditions": [to_json(each) for each in set_condition(group.status.conditions, condition, now)]},
    }

"""What the scheduler itself says about groups: when scheduling began, and whether a group is scheduled, or why not.

``scheduleStartTime`` of scheduler-plugins' PodGroups is written when the first member reaches Permit and never again.
The condition is that of the kind at hand. Of Kubernetes' own groups it stays True once it is, for there it is history,
not health, and nothing else is said, as kube-scheduler does it; of scheduler-plugins' every turn is told in an event.
"""

from dataclasses import dataclass
from typing import Any, Final

import structlog

from spinney.api import coscheduling, workload_v1alpha2, workload_v1beta1
from spinney.api.conditions import find_condition, is_true, set_condition
from spinney.api.meta import Condition
from spinney.api.resource import Resource
from spinney.api.struct import JSON, to_json
from spinney.api.time import timestamp
from spinney.binding.pod_status import UNSCHEDULABLE
from spinney.cluster.statuses import PodStatus
from spinney.coscheduling import composites
from spinney.coscheduling.disruption import Disruption
from spinney.coscheduling.group import Group
from spinney.coscheduling.groups import Groups
from spinney.coscheduling.reporting import FAILED_SCHEDULING
from spinney.explain.rendering import EVENT_BYTES, bounded
from spinney.gangs.sources import coscheduling as coscheduling_source
from spinney.gangs.sources import native
from spinney.gangs.tree import GangKey
from spinney.kube.cache import WatchCache
from spinney.kube.controller import Controller, Requeue
from spinney.kube.errors import Conflict, KubeError, NotFound
from spinney.kube.events import EventRecorder, reference
from spinney.kube.keys import Key
from spinney.kube.manager import Manager

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class GroupKind:
    """A kind of group with a status: what it is decoded as, the condition it has, and where its gangs come from."""

    type: type[Any]
    condition: str
    sources: frozenset[str]
    native: bool
    """Whether it is Kubernetes' own, whose condition stays True once it is, and which gets no events."""


KINDS: Final = {
    coscheduling.POD_GROUP: GroupKind(
        coscheduling.PodGroup, coscheduling.SCHEDULED, frozenset({coscheduling_source.SOURCE}), native=False
    ),
    workload_v1alpha2.POD_GROUP: GroupKind(
        workload_v1alpha2.PodGroup, workload_v1alpha2.SCHEDULED, frozenset({native.SOURCE}), native=True
    ),
    workload_v1beta1.POD_GROUP: GroupKind(
        workload_v1beta1.PodGroup,
        workload_v1beta1.INITIALLY_SCHEDULED,
        frozenset({native.SOURCE, composites.SOURCE}),
        native=True,
    ),
}
"""The kinds of group whose status the scheduler writes to; an API server serves at most one of Kubernetes' own."""

SCHEDULED: Final = "Scheduled"

_BOUND: Final = frozenset({PodStatus.BINDING, PodStatus.BOUND, PodStatus.RUNNING})


class ScheduleStart:
    """Writes when the scheduling of a PodGroup began."""

    def __init__(self, manager: Manager, cache: WatchCache[coscheduling.PodGroup], disruption: Disruption) -> None:
        self._client = manager.client
        self._clock = manager.runtime.clock
        self._cache = cache
        self._background = disruption

    def reached_permit(self, group: Group) -> None:
        """Note that a member of ``group`` has a node, unless that was noted before."""
        key = Key(group.key.namespace, group.key.name)
        found = self._cache.get(key) if group.key.source == coscheduling_source.SOURCE else None
        if found is not None and found.status.schedule_start_time is None:
            self._background.in_background(self._write(key, found, timestamp(self._clock.now())))

    async def _write(self, key: Key, group: coscheduling.PodGroup, moment: str) -> None:
        patch = {"metadata": {"uid": group.metadata.uid}, "status": {"scheduleStartTime": moment}}
        try:
            await self._client.patch(coscheduling.POD_GROUP, key.name, patch, key.namespace, subresource="status")
        except (NotFound, Conflict):
            return
        except KubeError as error:
            log.warning("schedule start not written", group=str(key), error=str(error))


class GroupConditions:
    """Keeps the scheduled condition of one kind of group. Mutable: it knows why groups were refused last."""

    def __init__(
        self, manager: Manager, resource: Resource, cache: WatchCache[Any], groups: Groups, events: EventRecorder
    ) -> None:
        self._client = manager.client
        self._clock = manager.runtime.clock
        self._resource = resource
        self._kind = KINDS[resource]
        self._cache = cache
        self._groups = groups
        self._events = events
        self._refusals: dict[GangKey, str] = {}
        name = f"scheduled condition of {resource.plural}.{resource.group}"
        self.controller = Controller(name, self._reconcile, runtime=manager.runtime, metrics=manager.metrics, workers=4)
        manager.add(self.controller)

    def bound(self, group: Group) -> None:
        """Look at a group one of whose members was bound."""
        self._look_at(group)

    def refused(self, group: Group, reason: str) -> None:
        """Say that a group could not be scheduled, and why."""
        if group.key.source in self._kind.sources:
            self._refusals[group.key] = reason
        self._look_at(group)

    def happened(self, group: Group, reason: str, message: str) -> None:
        """Tell in an event on a group's object what is done for the group."""
        found = self._cache.get(Key(group.key.namespace, group.key.name))
        if found is not None and group.key.source in self._kind.sources and not self._kind.native:
            self._events.event(reference(self._resource, found), "Normal", reason, message)

    def _look_at(self, group: Group) -> None:
        if group.key.source in self._kind.sources:
            for key in group.objects:
                self.controller.enqueue(key)

    async def _reconcile(self, key: Key) -> Requeue | None:
        found = self._cache.get(key)
        source = native.SOURCE if self._kind.native else coscheduling_source.SOURCE
        group = self._groups.get(GangKey(source, *key))
        if found is None or group is None:
            self._refusals.pop(group.key if group is not None else GangKey(source, *key), None)
            return None
        if self._kind.native and is_true(found.status.conditions, self._kind.condition):
            self._refusals.pop(group.key, None)
            return None
        condition = self._condition(group)
        was = find_condition(found.status.conditions, self._kind.condition)
        if condition is None or (
            was is not None and (was.status, was.message) == (condition.status, condition.message)
        ):
            return None
        conditions = set_condition(found.status.conditions, condition, self._clock.now())
        patch: JSON = {
            "metadata": {"resourceVersion": found.metadata.resource_version},
            "status": {"conditions": [to_json(each) for each in conditions]},
        }
        try:
            await self._client.patch(self._resource, key.name, patch, key.namespace, subresource="status")
        except NotFound:
            return None
        if not self._kind.native:
            self._tell(found, condition)
        return None

    def _tell(self, found: Any, condition: Condition) -> None:
        about = reference(self._resource, found)
        if condition.status == "True":
            self._events.event(about, "Normal", SCHEDULED, condition.message)
        else:
            self._events.event(about, "Warning", FAILED_SCHEDULING, bounded(condition.message, EVENT_BYTES))

    def _condition(self, group: Group) -> Condition | None:
        kind = self._kind.condition
        placed = sum(record.status in _BOUND for record in group.members.values())
        if group.satisfied and placed >= group.minimum and not group.waiting:
            self._refusals.pop(group.key, None)
            said = f"{group.minimum} pods, as many as must run together, have their nodes"
            return Condition(type=kind, status="True", reason=SCHEDULED, message=said)
        reason = self._refusals.get(group.key)
        return Condition(type=kind, status="False", reason=UNSCHEDULABLE, message=reason) if reason else None

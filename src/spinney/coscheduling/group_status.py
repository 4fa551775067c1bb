"""What the scheduler itself says about groups: when scheduling began, and whether a group is scheduled, or why not.

``scheduleStartTime`` of scheduler-plugins' PodGroups is written when the first member reaches Permit and never again.
The condition is that of the kind at hand (:mod:`spinney.reporting.pod_groups`). Of Kubernetes' own groups nothing
else is said, as kube-scheduler does it; of scheduler-plugins' every turn is told in an event.
"""

from typing import Any, Final

import structlog

from spinney.api import coscheduling, workload_v1beta1
from spinney.api.resource import Resource
from spinney.api.time import timestamp
from spinney.cluster.statuses import PodStatus
from spinney.coscheduling.disruption import Disruption
from spinney.coscheduling.group import Group
from spinney.coscheduling.groups import Groups
from spinney.coscheduling.reporting import FAILED_SCHEDULING
from spinney.explain.rendering import EVENT_BYTES, bounded
from spinney.gangs import composites
from spinney.gangs.sources import coscheduling as coscheduling_source
from spinney.gangs.tree import GangKey
from spinney.kube.cache import WatchCache
from spinney.kube.controller import Controller, Requeue
from spinney.kube.errors import Conflict, KubeError, NotFound
from spinney.kube.events import EventRecorder, reference
from spinney.kube.keys import Key
from spinney.kube.manager import Manager
from spinney.reporting.pod_groups import GROUP_KINDS, scheduled_patch, settled
from spinney.reporting.pods import UNSCHEDULABLE

log = structlog.get_logger()


SCHEDULED: Final = "Scheduled"
_COMPOSITES: Final = frozenset({workload_v1beta1.POD_GROUP})
"""Kinds of group that may be parts of a composite."""

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
    """Keeps the scheduled condition of one kind of group, from what groups were refused for last."""

    def __init__(
        self, manager: Manager, resource: Resource, cache: WatchCache[Any], groups: Groups, events: EventRecorder
    ) -> None:
        self._client = manager.client
        self._clock = manager.runtime.clock
        self._resource = resource
        self._kind = GROUP_KINDS[resource]
        self._sources = {self._kind.source} | ({composites.SOURCE} if resource in _COMPOSITES else set())
        self._cache = cache
        self._groups = groups
        self._events = events
        name = f"scheduled condition of {resource.plural}.{resource.group}"
        self.controller = Controller(name, self._reconcile, runtime=manager.runtime, metrics=manager.metrics, workers=4)
        manager.add(self.controller)

    def bound(self, group: Group) -> None:
        """Look at a group one of whose members was bound."""
        self._look_at(group)

    def refused(self, group: Group, reason: str) -> None:
        """Say that a group could not be scheduled, and why."""
        if group.key.source in self._sources:
            group.refusal = reason
        self._look_at(group)

    def happened(self, group: Group, reason: str, message: str) -> None:
        """Tell in an event on a group's object what is done for the group."""
        found = self._cache.get(Key(group.key.namespace, group.key.name))
        if found is not None and group.key.source in self._sources and not self._kind.native:
            self._events.event(reference(self._resource, found), "Normal", reason, message)

    def _look_at(self, group: Group) -> None:
        if group.key.source in self._sources:
            for key in group.objects:
                self.controller.enqueue(key)

    async def _reconcile(self, key: Key) -> Requeue | None:
        found = self._cache.get(key)
        group = self._groups.get(GangKey(self._kind.source, *key))
        if found is None or group is None or settled(self._kind, found):
            return None
        said = self._verdict(group)
        if said is None:
            return None
        scheduled, message = said
        reason = SCHEDULED if scheduled else UNSCHEDULABLE
        patch = scheduled_patch(
            self._kind, found, scheduled=scheduled, reason=reason, message=message, now=self._clock.now()
        )
        if not patch:
            return None
        try:
            await self._client.patch(self._resource, key.name, patch, key.namespace, subresource="status")
        except NotFound:
            return None
        if not self._kind.native:
            self._tell(found, scheduled=scheduled, message=message)
        return None

    def _tell(self, found: Any, *, scheduled: bool, message: str) -> None:
        about = reference(self._resource, found)
        if scheduled:
            self._events.event(about, "Normal", SCHEDULED, message)
        else:
            self._events.event(about, "Warning", FAILED_SCHEDULING, bounded(message, EVENT_BYTES))

    def _verdict(self, group: Group) -> tuple[bool, str] | None:
        """Return whether a group is scheduled, and what to say of it; None while there is nothing to say."""
        placed = sum(record.status in _BOUND for record in group.members.values())
        if group.satisfied and placed >= group.minimum and not group.waiting:
            group.refusal = ""
            return True, f"{group.minimum} pods, as many as must run together, have their nodes"
        return (False, group.refusal) if group.refusal else None

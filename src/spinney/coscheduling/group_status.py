"""What the scheduler itself says about groups: when scheduling began, and whether a native gang is scheduled.

For scheduler-plugins' PodGroups that is ``scheduleStartTime``, written when the first member reaches Permit and never
again. For Kubernetes' own it is the condition of the release at hand; once True it stays so, for it is history, not
health.
"""

from typing import Any, Final

import structlog

from spinney.api import coscheduling, workload_v1alpha2, workload_v1beta1
from spinney.api.conditions import find_condition, is_true, set_condition
from spinney.api.meta import Condition
from spinney.api.resource import Resource
from spinney.api.struct import JSON, to_json
from spinney.api.time import timestamp
from spinney.cluster.statuses import PodStatus
from spinney.coscheduling.disruption import Disruption
from spinney.coscheduling.groups import Group, Groups
from spinney.gangs.sources import coscheduling as coscheduling_source
from spinney.gangs.sources import native
from spinney.gangs.tree import GangKey
from spinney.kube.cache import WatchCache
from spinney.kube.controller import Controller, Requeue
from spinney.kube.errors import Conflict, KubeError, NotFound
from spinney.kube.keys import Key
from spinney.kube.manager import Manager

log = structlog.get_logger()

CONDITIONS: Final = {
    workload_v1alpha2.POD_GROUP: workload_v1alpha2.SCHEDULED,
    workload_v1beta1.POD_GROUP: workload_v1beta1.INITIALLY_SCHEDULED,
}
"""The condition that says that a native gang was scheduled, by the kind of the release."""

_BOUND: Final = frozenset({PodStatus.BOUND, PodStatus.RUNNING})


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


class NativeConditions:
    """Keeps the scheduled condition of native PodGroups. Mutable: it knows why groups were refused last."""

    def __init__(self, manager: Manager, resource: Resource, cache: WatchCache[Any], groups: Groups) -> None:
        self._client = manager.client
        self._clock = manager.runtime.clock
        self._resource = resource
        self._cache = cache
        self._groups = groups
        self._refusals: dict[GangKey, str] = {}
        self.controller = Controller(
            "native pod groups", self._reconcile, runtime=manager.runtime, metrics=manager.metrics, workers=4
        )
        manager.add(self.controller)

    def bound(self, group: Group) -> None:
        """Look at a group one of whose members was bound."""
        if group.key.source == native.SOURCE:
            self.controller.enqueue(Key(group.key.namespace, group.key.name))

    def refused(self, group: Group, reason: str) -> None:
        """Say that a group could not be scheduled, and why."""
        if group.key.source == native.SOURCE:
            self._refusals[group.key] = reason
            self.controller.enqueue(Key(group.key.namespace, group.key.name))

    async def _reconcile(self, key: Key) -> Requeue | None:
        found = self._cache.get(key)
        group = self._groups.get(GangKey(native.SOURCE, *key))
        if found is None or group is None:
            self._refusals.pop(GangKey(native.SOURCE, *key), None)
            return None
        kind = CONDITIONS[self._resource]
        if is_true(found.status.conditions, kind):
            self._refusals.pop(group.key, None)
            return None
        condition = self._condition(kind, group)
        was = find_condition(found.status.conditions, kind)
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
        return None

    def _condition(self, kind: str, group: Group) -> Condition | None:
        placed = sum(record.status in _BOUND or record.status is PodStatus.BINDING for record in group.members.values())
        if group.satisfied and placed >= group.minimum and not group.waiting:
            return Condition(type=kind, status="True", reason="Scheduled", message="All required pods scheduled")
        reason = self._refusals.get(group.key)
        return Condition(type=kind, status="False", reason="Unschedulable", message=reason) if reason else None

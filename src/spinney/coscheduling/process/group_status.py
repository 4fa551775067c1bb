"""What the scheduler itself says about groups: when scheduling began, and whether a group is scheduled, or why not.

``scheduleStartTime`` of scheduler-plugins' PodGroups is written when the first member reaches Permit and never again.
The condition is that of the kind at hand (:mod:`spinney.reporting.pod_groups`). Of Kubernetes' own groups nothing
else is said, as kube-scheduler does it; of scheduler-plugins' every turn is told in an event.
"""

import asyncio
from typing import Any, Final

import structlog

from spinney.api import coscheduling
from spinney.api.resource import Resource
from spinney.api.time import timestamp
from spinney.cluster.statuses import PodStatus
from spinney.coscheduling.groups.book import Groups
from spinney.coscheduling.groups.group import Group
from spinney.gangs.sources import coscheduling as coscheduling_source
from spinney.gangs.tree import GangKey
from spinney.kube.cache import Change, WatchCache
from spinney.kube.errors import KubeError
from spinney.kube.events import EventRecorder, reference
from spinney.kube.keys import Key
from spinney.kube.manager import Manager
from spinney.kube.reconciling import unless_gone
from spinney.reporting.controller import AnyStatusController, StatusController, StatusKind
from spinney.reporting.pod_groups import GROUP_KINDS, ScheduledCondition
from spinney.reporting.pods import UNSCHEDULABLE
from spinney.reporting.verdicts import GangStanding, GangVerdict
from spinney.runtime.tasks import BackgroundTasks

log = structlog.get_logger()


SCHEDULED: Final = "Scheduled"


AT_ONCE: Final = 4
"""Starts that are written at the same time: each more would open a connection, and nobody waits for them."""


class ScheduleStart:
    """Writes when the scheduling of a PodGroup began, once. Mutable: it knows what is not seen to be written yet."""

    def __init__(self, manager: Manager, cache: WatchCache[coscheduling.PodGroup], background: BackgroundTasks) -> None:
        self._client = manager.client
        self._clock = manager.runtime.clock
        self._cache = cache
        self._background = background
        self._begun: set[str | None] = set()
        self._slots = asyncio.Semaphore(AT_ONCE)
        cache.subscribe(self._see)

    def reached_permit(self, group: Group) -> None:
        """Note that a member of ``group`` has a node, unless that was noted before."""
        key = Key(group.key.namespace, group.key.name)
        found = self._cache.get(key) if group.key.source == coscheduling_source.SOURCE else None
        if found is None or found.status.schedule_start_time is not None or found.metadata.uid in self._begun:
            return
        self._begun.add(found.metadata.uid)
        self._background.begin(self._write(key, found, timestamp(self._clock.now())))

    def _see(self, change: Change[coscheduling.PodGroup]) -> None:
        if change.old is not None and (change.new is None or change.new.status.schedule_start_time is not None):
            self._begun.discard(change.old.metadata.uid)

    async def _write(self, key: Key, group: coscheduling.PodGroup, moment: str) -> None:
        patch = {"metadata": {"uid": group.metadata.uid}, "status": {"scheduleStartTime": moment}}
        try:
            async with self._slots:
                await unless_gone(
                    self._client.patch(coscheduling.POD_GROUP, key.name, patch, key.namespace, subresource="status")
                )
        except KubeError as error:
            self._begun.discard(group.metadata.uid)
            log.warning("schedule start not written", group=str(key), error=str(error))


class GroupConditions:
    """Keeps the scheduled condition of groups, from what they were refused for last."""

    def __init__(self, manager: Manager, groups: Groups, events: EventRecorder) -> None:
        self._manager = manager
        self._groups = groups
        self._events = events
        self._writers: dict[Resource, tuple[AnyStatusController, WatchCache[Any]]] = {}

    def follow(self, cache: WatchCache[Any]) -> None:
        """Begin to write the condition of one kind of group."""
        kind = ScheduledCondition(cache.resource, tells=True)
        writer = StatusController(kind, self, self._manager, self._events)
        writer.follow(cache)
        self._manager.add(writer.controller)
        self._writers[cache.resource] = (writer, cache)

    def bound(self, group: Group) -> None:
        """Look at a group one of whose members was bound; why it was refused is over once it is scheduled."""
        if group.refusal and _is_scheduled(group, StatusKind.having_nodes):
            group.refusal = ""
        self._look_at(group)

    def refused(self, group: Group, reason: str) -> None:
        """Say that a group could not be scheduled, and why."""
        group.refusal = reason
        self._look_at(group)

    def happened(self, group: Group, reason: str, message: str) -> None:
        """Tell in an event on the object of a group that is not native what is done for the group."""
        for resource, (writer, cache) in self._writers.items():
            found = cache.get(Key(group.key.namespace, group.key.name))
            if found is not None and group.key.source in writer.kind.sources and not GROUP_KINDS[resource].native:
                self._events.event(reference(resource, found), "Normal", reason, message)

    def standing(self, gang: GangKey, having_nodes: frozenset[PodStatus]) -> GangStanding:
        """Tell whether a group is scheduled, and what to say of it; nothing while there is nothing to say."""
        group = self._groups.get(gang)
        if group is None:
            return GangStanding(None)
        if _is_scheduled(group, having_nodes):
            message = f"{group.minimum} pods, as many as must run together, have their nodes"
            return GangStanding(GangVerdict(scheduled=True, reason=SCHEDULED, message=message))
        if not group.refusal:
            return GangStanding(None)
        return GangStanding(GangVerdict(scheduled=False, reason=UNSCHEDULABLE, message=group.refusal))

    def parts(self, gang: GangKey) -> list[str]:
        """Return the names of the groups that a composite consists of."""
        group = self._groups.get(gang)
        return [key.name for key in group.objects] if group is not None else []

    def _look_at(self, group: Group) -> None:
        for writer, _ in self._writers.values():
            writer.look_at(group.key)


def _is_scheduled(group: Group, having_nodes: frozenset[PodStatus]) -> bool:
    placed = sum(record.status in having_nodes for record in group.members)
    return group.satisfied and placed >= group.minimum and not group.waiting

"""How the groups of the coscheduler stand: whether a group is scheduled, or why not.

The condition is that of the kind at hand (:mod:`spinney.reporting.pod_groups`). Of Kubernetes' own groups nothing
else is said, as kube-scheduler does it; of scheduler-plugins' every turn is told in an event.
"""

from typing import Any, Final

import structlog

from spinney.api.resource import Resource
from spinney.cluster.statuses import PodStatus
from spinney.coscheduling.groups.book import Groups
from spinney.coscheduling.groups.group import Group
from spinney.gangs.tree import GangKey
from spinney.kube.cache import WatchCache
from spinney.kube.events import EventRecorder, reference
from spinney.kube.keys import Key
from spinney.kube.manager import Manager
from spinney.reporting.controller import AnyStatusController, StatusController, StatusKind
from spinney.reporting.pod_groups import GROUP_KINDS, ScheduledCondition
from spinney.reporting.pods import UNSCHEDULABLE
from spinney.reporting.verdicts import GangStanding, GangVerdict

log = structlog.get_logger()


SCHEDULED: Final = "Scheduled"


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

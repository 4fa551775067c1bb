"""How the groups of the coscheduler stand: whether a group is scheduled, or why not, and since when it is tried.

The condition is that of the kind at hand (:mod:`spinney.reporting.pod_groups`). Of Kubernetes' own groups nothing
else is said, as kube-scheduler does it; of scheduler-plugins' every turn is told in an event, and
``scheduleStartTime`` is when the first member had a node. Both are one write, which gives way to binds: most groups are
scheduled by then.
"""

from typing import Any, Final

from spinney.api import coscheduling
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.api.time import timestamp
from spinney.cluster.statuses import PodStatus
from spinney.coscheduling.groups.book import Groups
from spinney.coscheduling.groups.group import Group
from spinney.gangs.sources import coscheduling as coscheduling_source
from spinney.gangs.tree import GangKey
from spinney.kube.cache import Change, WatchCache
from spinney.kube.events import EventRecorder, reference
from spinney.kube.keys import Key
from spinney.kube.manager import Manager
from spinney.reporting.controller import AnyStatusController, ObjectEvent, StatusController, StatusKind
from spinney.reporting.pod_groups import GROUP_KINDS, ScheduledCondition
from spinney.reporting.pods import UNSCHEDULABLE
from spinney.reporting.verdicts import GangStanding, GangVerdict
from spinney.runtime import Clock, Runtime

SCHEDULED: Final = "Scheduled"


class CoschedulingGroupStatus(ScheduledCondition):
    """The condition of scheduler-plugins' groups, and the time at which each began to be scheduled, never changed.

    Mutable: it knows the starts that are not seen to be written yet, by uid.
    """

    def __init__(self, cache: WatchCache[coscheduling.PodGroup], clock: Clock) -> None:
        super().__init__(cache.resource, tells=True)
        self._cache = cache
        self._clock = clock
        self._begun: dict[str | None, str] = {}
        cache.subscribe(self._see)

    def began(self, gang: GangKey) -> None:
        """Note that a member of a group has a node, unless that was noted before."""
        found = self._cache.get(Key(gang.namespace, gang.name)) if gang.source == coscheduling_source.SOURCE else None
        if found is not None and found.status.schedule_start_time is None:
            self._begun.setdefault(found.metadata.uid, timestamp(self._clock.now()))

    def _see(self, change: Change[coscheduling.PodGroup]) -> None:
        if change.old is not None and (change.new is None or change.new.status.schedule_start_time is not None):
            self._begun.pop(change.old.metadata.uid, None)

    def patch(self, found: coscheduling.PodGroup, standing: GangStanding, runtime: Runtime) -> JSON | None:
        """Return the condition, the start, or both."""
        patch = super().patch(found, standing, runtime)
        begun = self._begun.get(found.metadata.uid)
        if begun is None:
            return patch
        patch = patch or {"metadata": {"resourceVersion": found.metadata.resource_version}, "status": {}}
        return {**patch, "status": {**patch["status"], "scheduleStartTime": begun}}

    def event_with(self, found: Any, standing: GangStanding, patch: JSON) -> ObjectEvent | None:
        """Tell of the condition; the start is no turn of a group."""
        return super().event_with(found, standing, patch) if "conditions" in patch["status"] else None


class GroupConditions:
    """Keeps the scheduled condition of groups, from what they were refused for last."""

    def __init__(self, manager: Manager, groups: Groups, events: EventRecorder) -> None:
        self._manager = manager
        self._groups = groups
        self._events = events
        self._writers: dict[Resource, tuple[AnyStatusController, WatchCache[Any]]] = {}
        self._start: CoschedulingGroupStatus | None = None

    def follow(self, cache: WatchCache[Any]) -> None:
        """Begin to write the condition of one kind of group."""
        kind = ScheduledCondition(cache.resource)
        if cache.resource == coscheduling.POD_GROUP:
            kind = self._start = CoschedulingGroupStatus(cache, self._manager.runtime.clock)
        writer = StatusController(kind, self, self._manager, self._events)
        writer.follow(cache)
        self._manager.add(writer.controller)
        self._writers[cache.resource] = (writer, cache)

    def began(self, group: Group) -> None:
        """Look at a group whose first member has a node."""
        if self._start is not None:
            self._start.began(group.key)
            self._look_at(group)

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

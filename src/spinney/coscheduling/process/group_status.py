"""How the groups of the coscheduler stand: whether a group is scheduled, or why not, and since when it is tried.

The condition is that of the kind at hand (:mod:`spinney.reporting.pod_groups`). Of Kubernetes' own groups nothing
else is said, as kube-scheduler does it; of scheduler-plugins' every turn is told in an event, and
``scheduleStartTime`` is when the first member had a node. Both are one write, which gives way to binds: most groups are
scheduled by then.

Every group is looked at after a start, and whenever its object changes or a member is bound, by us or another. So what
was not written before a process went is written by the next one; when its scheduling began the pods then say.
"""

from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any, Final

from spinney.api import coscheduling
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.api.time import timestamp
from spinney.cluster.state import PodChange
from spinney.cluster.statuses import PLACED, PodStatus
from spinney.coscheduling.groups.book import Groups, was_bound_by_another
from spinney.coscheduling.groups.group import Group
from spinney.gangs.tree import GangKey
from spinney.kube.cache import WatchCache
from spinney.kube.client import Client
from spinney.kube.events import EventRecorder, reference
from spinney.kube.keys import Key, key_of
from spinney.kube.manager import Manager
from spinney.reporting.controller import AnyStatusController, ObjectEvent, StatusController, StatusKind
from spinney.reporting.pod_groups import GROUP_KINDS, ScheduledCondition
from spinney.reporting.pods import POD_SCHEDULED, UNSCHEDULABLE
from spinney.reporting.verdicts import WAITING, GangStanding, GangVerdict
from spinney.runtime import Runtime
from spinney.runtime.tasks import together

SCHEDULED: Final = "Scheduled"
_CLOSING_SECONDS: Final = 1.0
"""How long groups are still written when the process stops."""


class CoschedulingGroupStatus(ScheduledCondition):
    """The condition of scheduler-plugins' groups, and the time at which each began to be scheduled, never changed.

    Where the kind has no conditions, its API server drops them. They are then written only with a turn of a group, for
    the event beside them. ``since`` tells when the first of a gang's members was bound, if one is.

    Mutable: it knows the starts that are not seen to be written yet, with the uid of their group, and the groups that
    have turned.
    """

    def __init__(self, since: Callable[[GangKey], datetime | None]) -> None:
        super().__init__(coscheduling.POD_GROUP, tells=True)
        self._since = since
        self._begun: dict[Key, tuple[str | None, datetime]] = {}
        self._turned: set[Key] = set()
        self._conditions_kept = True

    def began(self, found: coscheduling.PodGroup, now: datetime) -> None:
        """Note that a member of a group has a node, unless that was noted before."""
        known = self._begun.get(key_of(found))
        if found.status.schedule_start_time is None and (known is None or known[0] != found.metadata.uid):
            self._begun[key_of(found)] = (found.metadata.uid, now)

    def turned(self, key: Key) -> None:
        """Note that something was decided about a group, which is told even where its condition is not kept."""
        self._turned.add(key)

    def gone(self, key: Key) -> None:
        self._begun.pop(key, None)
        self._turned.discard(key)

    def patch(self, found: coscheduling.PodGroup, standing: GangStanding, runtime: Runtime) -> JSON | None:
        """Return the condition, the start, or both."""
        patch = None
        if self._conditions_kept or key_of(found) in self._turned:
            patch = super().patch(found, standing, runtime)
        start = self._start(found)
        if start is None:
            return patch
        patch = patch or {"metadata": {"resourceVersion": found.metadata.resource_version}, "status": {}}
        return {**patch, "status": {**patch["status"], "scheduleStartTime": timestamp(start)}}

    def _start(self, found: coscheduling.PodGroup) -> datetime | None:
        """Return the start that a group is still to be told; none is before the group itself."""
        if found.status.schedule_start_time is not None:
            self._begun.pop(key_of(found), None)
            return None
        uid, begun = self._begun.get(key_of(found), (None, None))
        start = begun if uid == found.metadata.uid and begun is not None else self._since(self.gang_of(found))
        created = found.metadata.creation_timestamp
        return max(start, created) if start is not None and created is not None else start

    async def write(self, client: Client, found: coscheduling.PodGroup, patch: JSON) -> None:
        """Write a patch, and see whether the kind keeps conditions."""
        key = key_of(found)
        written = await client.patch(self.resource, key.name, patch, key.namespace, subresource="status")
        if "conditions" in patch["status"]:
            self._conditions_kept = bool(written.get("status", {}).get("conditions"))
            self._turned.discard(key)

    def event_with(self, found: Any, standing: GangStanding, patch: JSON) -> ObjectEvent | None:
        """Tell of the condition; the start is no turn of a group."""
        return super().event_with(found, standing, patch) if "conditions" in patch["status"] else None


class GroupConditions:
    """Keeps the scheduled condition of groups with pods of these scheduler ``names``, from what they were refused for.

    Has nothing to do until kinds of groups are followed.
    """

    def __init__(self, manager: Manager, groups: Groups, events: EventRecorder, names: Collection[str]) -> None:
        self._groups = groups
        self._events = events
        self._names = names
        self._clock = manager.runtime.clock
        self._start = CoschedulingGroupStatus(self._bound_since)
        kinds = [self._start, *(ScheduledCondition(each) for each in GROUP_KINDS if each != self._start.resource)]
        self._writers = {kind.resource: StatusController(kind, self, manager, events) for kind in kinds}
        self._followed: dict[Resource, tuple[AnyStatusController, WatchCache[Any]]] = {}
        for writer in self._writers.values():
            manager.add(writer.controller)

    def follow(self, cache: WatchCache[Any]) -> None:
        """Begin to write the condition of one kind of group, at the start or when the kind is installed later."""
        writer = self._writers[cache.resource]
        self._followed[cache.resource] = (writer, cache)
        writer.follow(cache)

    async def close(self) -> None:
        """Write what can be written in a moment; the rest is found by the next coscheduler process."""
        await together(*(writer.finish(_CLOSING_SECONDS) for writer, _ in self._followed.values()))

    def began(self, group: Group) -> None:
        """Look at a group whose first member has a node."""
        found = self._coscheduling_group(group)
        if found is not None:
            self._start.began(found, self._clock.now())
            self._look_at(group)

    def bound(self, group: Group) -> None:
        """Look at a group one of whose members was bound; why it was refused is over once it is scheduled."""
        self._turned(group)
        self._look_at_bound(group)

    def pod_changed(self, change: PodChange) -> None:
        """Look at the group of a pod that another has bound, maybe before this process began."""
        group = self._groups.of(change.new.key) if change.new is not None and was_bound_by_another(change) else None
        if group is None:
            return
        if change.old is not None:
            self._turned(group)
        self._look_at_bound(group)

    def refused(self, group: Group, reason: str) -> None:
        """Say that a group could not be scheduled, and why."""
        group.refusal = reason
        self._turned(group)
        self._look_at(group)

    def happened(self, group: Group, reason: str, message: str) -> None:
        """Tell in an event on the object of a group that is not native what is done for the group."""
        found = self._coscheduling_group(group)
        if found is not None:
            self._events.event(reference(coscheduling.POD_GROUP, found), "Normal", reason, message)

    def standing(self, gang: GangKey, having_nodes: frozenset[PodStatus]) -> GangStanding:
        """Tell whether a group is scheduled, and what to say of it."""
        group = self._served(gang)
        if group is None:
            return GangStanding(None)
        if _is_scheduled(group, having_nodes):
            message = f"{group.minimum} pods, as many as must run together, have their nodes"
            return GangStanding(GangVerdict(scheduled=True, reason=SCHEDULED, message=message))
        if not group.refusal:
            message = f"{_placed(group, having_nodes)} pods have their nodes, and {group.minimum} must run together"
            return GangStanding(GangVerdict(scheduled=False, reason=WAITING, message=message))
        return GangStanding(GangVerdict(scheduled=False, reason=UNSCHEDULABLE, message=group.refusal))

    def parts(self, gang: GangKey) -> list[str]:
        """Return the names of the groups that a composite consists of."""
        group = self._groups.get(gang)
        return [key.name for key in group.objects] if group is not None else []

    def _served(self, gang: GangKey) -> Group | None:
        """Return a group, or that of which it is part, if a member asks for one of our schedulers."""
        group = self._groups.get(gang)
        served = group is not None and any(each.pod.spec.scheduler_name in self._names for each in group.members)
        return group if served else None

    def _bound_since(self, gang: GangKey) -> datetime | None:
        """Return when the first member of a group was bound, as its pods say; where they do not say, now."""
        group = self._served(gang)
        bound = [record.pod for record in group.members if record.status in PLACED] if group is not None else []
        said = [pod.condition(POD_SCHEDULED) for pod in bound if pod.is_true(POD_SCHEDULED)]
        moments = [each.last_transition_time for each in said if each is not None and each.last_transition_time]
        return min(moments, default=self._clock.now()) if bound else None

    def _coscheduling_group(self, group: Group) -> coscheduling.PodGroup | None:
        """Return the object of a group of scheduler-plugins' kind."""
        _, cache = self._followed.get(coscheduling.POD_GROUP, (None, None))
        if cache is None or group.key.source not in self._start.sources:
            return None
        return cache.get(Key(group.key.namespace, group.key.name))

    def _turned(self, group: Group) -> None:
        found = self._coscheduling_group(group)
        if found is not None:
            self._start.turned(key_of(found))

    def _look_at_bound(self, group: Group) -> None:
        if group.refusal and _is_scheduled(group, StatusKind.having_nodes):
            group.refusal = ""
        self._look_at(group)

    def _look_at(self, group: Group) -> None:
        for writer, _ in self._followed.values():
            writer.look_at(group.key)


def _is_scheduled(group: Group, having_nodes: frozenset[PodStatus]) -> bool:
    return group.satisfied and _placed(group, having_nodes) >= group.minimum and not group.waiting


def _placed(group: Group, having_nodes: frozenset[PodStatus]) -> int:
    return sum(record.status in having_nodes for record in group.members)

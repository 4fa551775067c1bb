"""The condition by which Kubernetes' own PodGroups and scheduler-plugins' say that they are scheduled, or why not.

Groups whose pods ask for another scheduler are left to that one. Of Kubernetes' own groups the condition stays True
once it is, for there it is history, not health, as kube-scheduler keeps it; of scheduler-plugins' it follows what is,
and what the group asks for.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec

from spinney.api import coscheduling, workload_v1alpha2, workload_v1beta1
from spinney.api.conditions import find_condition, is_true, set_condition
from spinney.api.meta import Condition, ConditionStatus
from spinney.api.resource import Resource
from spinney.api.struct import JSON, to_json
from spinney.explain.rendering import EVENT_BYTES, bounded
from spinney.gangs import composites
from spinney.gangs.sources import coscheduling as coscheduling_source
from spinney.gangs.sources import native
from spinney.gangs.tree import GangKey
from spinney.kube.keys import Key
from spinney.reporting.controller import ObjectEvent, StatusKind
from spinney.reporting.pods import FAILED_SCHEDULING
from spinney.reporting.verdicts import WAITING, GangStanding, GangVerdict, Standings, is_served
from spinney.runtime import Runtime


class GroupKind(msgspec.Struct, frozen=True):
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


class ScheduledCondition(StatusKind[Any]):
    """The condition of one kind of group. ``tells`` has every turn of a group that is not native told in an event.

    Every group is looked at after a start, so what a process could not write before it went the next one writes.
    """

    follows_objects = True
    gives_way = True

    def __init__(self, resource: Resource, *, names: Collection[str] = (), tells: bool = False) -> None:
        self.name = f"scheduled condition of {resource.plural}.{resource.group}"
        self.resource = resource
        self._kind = GROUP_KINDS[resource]
        self._names = names
        self._tells = tells and not self._kind.native
        self.sources = frozenset({self._kind.source}) | (
            {composites.SOURCE} if resource == workload_v1beta1.POD_GROUP else frozenset()
        )

    def gang_of(self, found: Any) -> GangKey:
        return GangKey.of(self._kind.source, found.metadata)

    def keys(self, gang: GangKey, standings: Standings) -> list[Key]:
        """Return the group of a gang, or those of the parts of a composite."""
        names = [gang.name] if gang.source == self._kind.source else standings.parts(gang)
        return [Key(gang.namespace, name) for name in names]

    def patch(self, found: Any, standing: GangStanding, runtime: Runtime) -> JSON | None:
        """Return the condition, for the version at hand."""
        said, kind = standing.said, self._kind
        was = find_condition(found.status.conditions, kind.condition)
        if said is None or not is_served(standing.members, self._names):
            return None
        outdated = self._outdated(found, was)
        if said.reason == WAITING and not outdated:
            return None
        status: ConditionStatus = "True" if said.scheduled else "False"
        settled = kind.native and is_true(found.status.conditions, kind.condition)
        if settled or (_says(was, said) and not outdated):
            return None
        condition = Condition(
            type=kind.condition,
            status=status,
            reason=said.reason,
            message=said.message,
            observed_generation=None if kind.native else found.metadata.generation,
        )
        conditions = set_condition(found.status.conditions, condition, runtime.clock.now())
        return {
            "metadata": {"resourceVersion": found.metadata.resource_version},
            "status": {"conditions": [to_json(each) for each in conditions]},
        }

    def _outdated(self, found: Any, was: Condition | None) -> bool:
        """Tell whether a group that was scheduled was changed since: it may need more pods than it did then.

        One that merely has fewer pods has ended, or is about to be refused.
        """
        if self._kind.native or was is None or was.status != "True" or was.observed_generation is None:
            return False
        return bool(was.observed_generation < (found.metadata.generation or 0))

    def event_with(self, found: Any, standing: GangStanding, patch: JSON) -> ObjectEvent | None:
        """Tell that a group is scheduled, or why not."""
        said, was = standing.said, find_condition(found.status.conditions, self._kind.condition)
        if said is None or not self._tells or _says(was, said):
            return None
        if said.scheduled:
            return ObjectEvent("Normal", said.reason, said.message)
        return ObjectEvent("Warning", FAILED_SCHEDULING, bounded(said.message, EVENT_BYTES))


def _says(was: Condition | None, said: GangVerdict) -> bool:
    """Tell whether a condition says it already."""
    return was is not None and (was.status, was.message) == ("True" if said.scheduled else "False", said.message)

"""Gang termination: a gang that has lost its minimum for longer than it may is recycled.

The delay runs from the moment the minimum was lost. Only what was well before is recycled: a workload that never ran is
waiting, not broken. A scaling group first heals itself, by recycling single replicas as long as its minimum survives
that; otherwise the whole replica of the set goes. During an update the condition is Unknown, so nothing fires.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from spinney.api.conditions import find_condition
from spinney.api.durations import parse_duration
from spinney.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from spinney.api.meta import Condition
from spinney.api.time import parse_timestamp
from spinney.backends import additions
from spinney.operator.desired.layout import Layout
from spinney.operator.pod_states import DISTANT_PAST
from spinney.operator.status.podclique import MIN_AVAILABLE_BREACHED, POD_CLIQUE_SCHEDULED, was_well_before
from spinney.operator.status.podcliquescalinggroup import by_replica, is_being_recycled
from spinney.operator.status.podcliqueset import ObservedSet, replica_index

DEFAULT_DELAY = timedelta(hours=4)


@dataclass(frozen=True)
class Recycling:
    """Which replicas are to be recycled now, and how long until the next decision is due."""

    recycle: tuple[int, ...] = ()
    wait: timedelta | None = None


def of_scaling_group(
    group: PodCliqueScalingGroup, cliques: Iterable[PodClique], pcs: PodCliqueSet, now: datetime
) -> Recycling:
    """Return which replicas of a scaling group of a set are recycled; none where that would undercut its minimum."""
    delay = _delay(pcs)
    progress = group.status.update_progress
    if progress is not None and progress.update_ended_at is None:
        return Recycling()
    remaining = {
        j: left
        for j, members in by_replica(cliques).items()
        if (left := _soonest(_left(_breach_of(each), delay, now) for each in members)) is not None
    }
    if group.spec.copies - len(remaining) < group.spec.minimum:
        return Recycling()
    return _recycling(remaining)


def of_set(layout: Layout, observed: ObservedSet, now: datetime) -> Recycling:
    """Return which replicas of a set are recycled."""
    delay = _delay(layout.pcs)
    remaining: dict[int, timedelta] = {}
    members, recycled = observed.members, _recycled(observed)
    groups: dict[int, list[PodCliqueScalingGroup]] = {}
    for group in observed.groups.values():
        groups.setdefault(replica_index(group.metadata.labels), []).append(group)
    for i in range(layout.replicas):
        cliques = [observed.cliques.get(place.name) for place in layout.standalone(i)]
        if any(clique is None or clique.metadata.deleting for clique in cliques):
            continue  # a recycling is under way
        breaches = [_breach_of(each) for each in cliques if each is not None]
        breaches += [
            _breach_of_group(group, members.get(group.metadata.name, ()), recycled.get(i, DISTANT_PAST))
            for group in groups.get(i, ())
        ]
        left = _soonest(_left(breach, delay, now) for breach in breaches)
        if left is not None:
            remaining[i] = left
    return _recycling(remaining)


def _breach_of(clique: PodClique) -> Condition | None:
    """Return the breach of a PodClique that had its minimum before."""
    breach = _breach(clique.status.conditions)
    created = clique.metadata.creation_timestamp
    if breach is None or not was_well_before(clique.status.conditions, POD_CLIQUE_SCHEDULED, created):
        return None
    return breach


def _recycled(observed: ObservedSet) -> dict[int, datetime]:
    """Return when each replica was last recycled; those that never were are left out."""
    asked: dict[int, datetime] = {}
    for gang in observed.gangs.values():
        if (when := gang.metadata.annotations.get(additions.RECYCLE)) is not None:
            i = replica_index(gang.metadata.labels)
            asked[i] = max(parse_timestamp(when), asked.get(i, DISTANT_PAST))
    return asked


def _breach_of_group(
    group: PodCliqueScalingGroup, members: Iterable[PodClique], recycled: datetime
) -> Condition | None:
    """Return the breach of a group that was well before; one that recycling has not healed is not tried on again."""
    conditions = group.status.conditions
    if is_being_recycled(conditions, members):
        return None
    if not was_well_before(conditions, MIN_AVAILABLE_BREACHED, group.metadata.creation_timestamp):
        return None
    breach = _breach(conditions)
    began = breach.last_transition_time if breach is not None else None
    return None if began is not None and began <= recycled else breach


def _breach(conditions: tuple[Condition, ...]) -> Condition | None:
    condition = find_condition(conditions, MIN_AVAILABLE_BREACHED)
    return condition if condition is not None and condition.status == "True" else None


def _delay(pcs: PodCliqueSet) -> timedelta:
    delay = pcs.spec.template.termination_delay
    return DEFAULT_DELAY if delay is None else parse_duration(delay)


def _left(breach: Condition | None, delay: timedelta, now: datetime) -> timedelta | None:
    if breach is None or breach.last_transition_time is None:
        return None
    return breach.last_transition_time + delay - now


def _soonest(times: Iterable[timedelta | None]) -> timedelta | None:
    return min((time for time in times if time is not None), default=None)


def _recycling(remaining: Mapping[int, timedelta]) -> Recycling:
    due = tuple(index for index, left in remaining.items() if left <= timedelta())
    return Recycling(due, _soonest(left for left in remaining.values() if left > timedelta()))

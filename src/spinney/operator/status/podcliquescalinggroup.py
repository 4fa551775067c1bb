"""The status of a PodCliqueScalingGroup, computed from its PodCliques."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import msgspec

from spinney.api import labels as marks
from spinney.api.conditions import find_condition, is_true, set_condition
from spinney.api.grove import PodClique, PodCliqueScalingGroup
from spinney.api.grove_status import PodCliqueScalingGroupStatus, PodCliqueScalingGroupUpdateProgress
from spinney.api.meta import Condition
from spinney.operator.desired import labels
from spinney.operator.desired.hashes import TemplateHashes
from spinney.operator.desired.names import template_name
from spinney.operator.status.podclique import (
    MIN_AVAILABLE_BREACHED,
    POD_CLIQUE_SCHEDULED,
    set_since,
    was_well_before,
)

GANG_TERMINATION_IN_PROGRESS = "GangTerminationInProgress"


def group_status(
    group: PodCliqueScalingGroup,
    cliques: Iterable[PodClique],
    *,
    hashes: TemplateHashes,
    progress: PodCliqueScalingGroupUpdateProgress | None,
    settled: bool,
    now: datetime,
) -> PodCliqueScalingGroupStatus:
    """Return the status of a scaling group; ``hashes`` are those of its set, ``progress`` that of its update.

    Until the update is ``settled`` the hash on record remains.
    """
    replicas = group.spec.copies
    members = list(cliques)
    whole = complete_replicas(group, members)
    scheduled = [j for j, members in whole.items() if all(is_clique_scheduled(each) for each in members)]
    available = [j for j in scheduled if all(is_clique_available(each) for each in whole[j])]
    updated = [j for j in available if all(is_clique_updated(each, hashes) for each in whole[j])]
    updating = progress is not None and progress.update_ended_at is None
    current = hashes.generation if settled else group.status.current_pod_clique_set_generation_hash
    status = PodCliqueScalingGroupStatus(
        replicas=replicas,
        scheduled_replicas=len(scheduled),
        available_replicas=len(available),
        updated_replicas=len(updated),
        selector=labels.selector(
            labels.managed(group.metadata.labels.get(marks.PART_OF, "")) | {marks.SCALING_GROUP: group.metadata.name}
        ),
        observed_generation=group.metadata.generation,
        conditions=group.status.conditions,
        current_pod_clique_set_generation_hash=current,
        update_progress=progress,
    )
    breach = _breach(group, whole, updating)
    created = group.metadata.creation_timestamp
    conditions = set_since(status.conditions, breach, now, created)
    conditions = tuple(each for each in conditions if each.type != GANG_TERMINATION_IN_PROGRESS)
    # A new group lacks its minimum from the beginning: that is no recycling.
    if was_well_before(conditions, MIN_AVAILABLE_BREACHED, created) and is_being_recycled(conditions, members):
        conditions = (*conditions, _recycling(group.status.conditions, now))
    return msgspec.structs.replace(status, conditions=conditions)


def by_replica(cliques: Iterable[PodClique]) -> dict[int, list[PodClique]]:
    """Return the PodCliques of a scaling group that are not being deleted, by replica index."""
    found: dict[int, list[PodClique]] = {}
    for clique in cliques:
        if not clique.metadata.deleting:
            found.setdefault(int(clique.metadata.labels[marks.SCALING_GROUP_REPLICA_INDEX]), []).append(clique)
    return dict(sorted(found.items()))


def complete_replicas(group: PodCliqueScalingGroup, cliques: Iterable[PodClique]) -> dict[int, list[PodClique]]:
    """Return the replicas that are wanted and have all their PodCliques."""
    size, replicas = len(group.spec.clique_names), group.spec.copies
    return {j: members for j, members in by_replica(cliques).items() if j < replicas and len(members) == size}


def is_clique_scheduled(clique: PodClique) -> bool:
    """Tell whether a PodClique reports its minimum as placed."""
    return is_true(clique.status.conditions, POD_CLIQUE_SCHEDULED)


def is_clique_available(clique: PodClique) -> bool:
    """Tell whether a PodClique has its minimum ready."""
    return clique.status.ready_replicas >= clique.spec.minimum


def is_clique_updated(clique: PodClique, hashes: TemplateHashes) -> bool:
    """Tell whether a PodClique runs the set's present template, with at least its minimum."""
    expected = hashes.cliques.get(template_name(clique.metadata.name, clique.metadata.labels))
    return (
        clique.metadata.labels.get(marks.POD_TEMPLATE_HASH) == expected
        and clique.status.current_pod_template_hash == expected
        and clique.status.current_pod_clique_set_generation_hash == hashes.generation
        and is_clique_available(clique)
        and clique.status.updated_replicas >= clique.spec.minimum
    )


def is_being_recycled(conditions: tuple[Condition, ...], members: Iterable[PodClique]) -> bool:
    """Tell whether a breach began before the newest PodClique was made: it is being healed, not ignored.

    A group notices that its PodCliques are gone and makes new ones in one breath, hence "or at the same second".
    """
    breach = find_condition(conditions, MIN_AVAILABLE_BREACHED)
    if breach is None or breach.status != "True" or breach.last_transition_time is None:
        return False
    since = breach.last_transition_time
    return any((created := each.metadata.creation_timestamp) is not None and created >= since for each in members)


def is_breached(clique: PodClique) -> bool:
    """Tell whether a PodClique reports fewer pods than its minimum."""
    return is_true(clique.status.conditions, MIN_AVAILABLE_BREACHED)


def _breach(group: PodCliqueScalingGroup, whole: Mapping[int, Sequence[PodClique]], updating: bool) -> Condition:
    if updating:
        text = "the scaling group is being updated"
        return Condition(type=MIN_AVAILABLE_BREACHED, status="Unknown", reason="UpdateInProgress", message=text)
    well = [j for j, members in whole.items() if not any(_is_unwell(each) for each in members)]
    least = group.spec.minimum
    text = f"{len(well)} of at least {least} replicas have the minimum of each PodClique"
    if len(well) < least:
        reason = "InsufficientAvailablePodCliqueScalingGroupReplicas"
        return Condition(type=MIN_AVAILABLE_BREACHED, status="True", reason=reason, message=text)
    reason = "SufficientAvailablePodCliqueScalingGroupReplicas"
    return Condition(type=MIN_AVAILABLE_BREACHED, status="False", reason=reason, message=text)


def _recycling(before: tuple[Condition, ...], now: datetime) -> Condition:
    text = "PodCliques were made anew after the minimum was lost"
    new = Condition(type=GANG_TERMINATION_IN_PROGRESS, status="True", reason="GangTerminationActive", message=text)
    settled = find_condition(set_condition(before, new, now), new.type)
    assert settled is not None
    return settled


def _is_unwell(clique: PodClique) -> bool:
    """Tell whether a PodClique is breached, or has not said yet how it is."""
    return is_breached(clique) or find_condition(clique.status.conditions, MIN_AVAILABLE_BREACHED) is None

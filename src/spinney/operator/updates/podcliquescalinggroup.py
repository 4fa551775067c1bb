"""Updating the replicas of one PodCliqueScalingGroup.

The unit is a replica: all its PodCliques are deleted and made anew. Old replicas that do not serve go at once, those
that do one at a time, lowest index first, while the group stays above its minimum or, with none to spare, is complete.
A PodClique that was made anew already is not deleted again: of a replica some may be seen to be new before others are
seen to be gone.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from spinney.api import labels as marks
from spinney.api.grove import PodClique, PodCliqueScalingGroup
from spinney.api.grove_status import PodCliqueScalingGroupUpdateProgress, ReplicasSelectedToUpdate
from spinney.operator.desired.hashes import TemplateHashes
from spinney.operator.desired.names import template_name
from spinney.operator.status.podcliquescalinggroup import (
    by_replica,
    complete_replicas,
    is_clique_available,
    is_clique_scheduled,
    is_clique_updated,
)


@dataclass(frozen=True)
class GroupUpdate:
    """Where the update of a scaling group stands: its progress, the PodCliques to delete now, whether it is settled."""

    progress: PodCliqueScalingGroupUpdateProgress | None
    delete: tuple[PodClique, ...] = ()
    settled: bool = True


@dataclass(frozen=True)
class _Step:
    """The next step of an update: its progress, the replicas to recycle, whether it is settled."""

    progress: PodCliqueScalingGroupUpdateProgress
    recycle: tuple[int, ...] = ()
    settled: bool = True


def group_update(
    group: PodCliqueScalingGroup,
    cliques: Iterable[PodClique],
    *,
    hashes: TemplateHashes,
    selected: bool,
    on_delete: bool,
    now: datetime,
) -> GroupUpdate:
    """Return the next step; ``selected`` says that it is this group's turn in the update of its set."""
    recorded = group.status.current_pod_clique_set_generation_hash
    progress = group.status.update_progress
    under_way = progress is not None and progress.update_ended_at is None
    members = list(cliques)
    # Before anything was put on record, only PodCliques of another template tell that there is something to update.
    unrecorded = recorded is None and _follows((each for each in members if not each.metadata.deleting), hashes)
    if not under_way and (recorded == hashes.generation or unrecorded):
        return GroupUpdate(progress)
    if on_delete:
        opened = PodCliqueScalingGroupUpdateProgress(
            update_started_at=now, update_ended_at=now, pod_clique_set_generation_hash=hashes.generation
        )
        return GroupUpdate(_counted(opened, group, members, hashes))
    if not selected:
        return GroupUpdate(progress, settled=False)
    if progress is None or not under_way or progress.pod_clique_set_generation_hash != hashes.generation:
        progress = PodCliqueScalingGroupUpdateProgress(
            update_started_at=now, pod_clique_set_generation_hash=hashes.generation
        )
    step = _step(group, members, progress, hashes, now)
    present = by_replica(members)
    doomed = [clique for j in step.recycle for clique in present[j] if not _is_new(clique, step.progress, hashes)]
    return GroupUpdate(_counted(step.progress, group, members, hashes), tuple(doomed), step.settled)


def _step(
    group: PodCliqueScalingGroup,
    members: Sequence[PodClique],
    progress: PodCliqueScalingGroupUpdateProgress,
    hashes: TemplateHashes,
    now: datetime,
) -> _Step:
    wanted = {j: each for j, each in by_replica(members).items() if j < group.spec.copies}
    whole = complete_replicas(group, members)
    old = {j: each for j, each in wanted.items() if not _follows(each, hashes)}
    serving = [j for j in old if j in whole and _serves(whole[j])]
    idle = tuple(j for j in old if j not in serving)

    selection = progress.ready_replica_indices_selected_to_update
    if selection is not None and selection.current not in selection.completed:
        current = selection.current
        if current in old:
            return _Step(progress, tuple(sorted({*idle, current})), settled=False)
        if current < group.spec.copies and not _is_updated(whole.get(current), hashes):
            return _Step(progress, idle, settled=False)
        selection = ReplicasSelectedToUpdate(current=current, completed=(*selection.completed, current))
        progress = msgspec.structs.replace(progress, ready_replica_indices_selected_to_update=selection)
    if not old:
        if not all(_is_updated(whole.get(j), hashes) for j in range(group.spec.copies)):
            return _Step(progress, settled=False)
        return _Step(msgspec.structs.replace(progress, update_ended_at=now))
    available = sum(_serves(each) for each in whole.values())
    if serving and available >= min(group.spec.copies, group.spec.minimum + 1):
        completed = selection.completed if selection is not None else ()
        # A replica that turned old again while the update ran (a further change) is not "completed" any more.
        kept = tuple(j for j in completed if j != serving[0])
        selection = ReplicasSelectedToUpdate(current=serving[0], completed=kept)
        progress = msgspec.structs.replace(progress, ready_replica_indices_selected_to_update=selection)
        return _Step(progress, (*idle, serving[0]), settled=False)
    return _Step(progress, idle, settled=False)


def _counted(
    progress: PodCliqueScalingGroupUpdateProgress,
    group: PodCliqueScalingGroup,
    members: Iterable[PodClique],
    hashes: TemplateHashes,
) -> PodCliqueScalingGroupUpdateProgress:
    wanted = [each for j, each in by_replica(members).items() if j < group.spec.copies]
    return msgspec.structs.replace(
        progress,
        total_pod_cliques_count=group.spec.copies * len(group.spec.clique_names),
        updated_pod_cliques_count=sum(is_clique_updated(clique, hashes) for each in wanted for clique in each),
    )


def _follows(members: Iterable[PodClique], hashes: TemplateHashes) -> bool:
    """Tell whether every PodClique of a replica was made from the present template."""
    return all(clique.metadata.labels.get(marks.POD_TEMPLATE_HASH) == _expected(clique, hashes) for clique in members)


def _is_new(clique: PodClique, progress: PodCliqueScalingGroupUpdateProgress, hashes: TemplateHashes) -> bool:
    """Tell whether a PodClique was made from the present template since the update began."""
    created = clique.metadata.creation_timestamp
    return created is not None and created > progress.update_started_at and _follows([clique], hashes)


def _expected(clique: PodClique, hashes: TemplateHashes) -> str | None:
    expected: Mapping[str, str] = hashes.cliques
    return expected.get(template_name(clique.metadata.name, clique.metadata.labels))


def _serves(members: Iterable[PodClique]) -> bool:
    return all(is_clique_scheduled(clique) and is_clique_available(clique) for clique in members)


def _is_updated(members: Sequence[PodClique] | None, hashes: TemplateHashes) -> bool:
    return members is not None and all(is_clique_updated(clique, hashes) for clique in members)

"""Updating the pods of one PodClique to its present template.

RollingRecreate deletes old pods and lets them come back from the new template, without surge. Old pods that do not
serve are deleted at once. Those that serve go one at a time, oldest first, and only while the clique stays above its
minimum or, when it has no pods to spare, is complete. OnDelete only takes note: whatever is created from now on is new.

An update is due when the template on record is not the present one, or when one is under way (a template changed back
half-way leaves pods of both). Which template was on record is only forgotten when the update is done.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from spinney.api import labels as marks
from spinney.api.core import Pod
from spinney.api.grove import PodClique
from spinney.api.grove_status import PodCliqueUpdateProgress, PodsSelectedToUpdate
from spinney.operator.pod_states import DISTANT_PAST, PodState, is_active, is_ready, state


@dataclass(frozen=True)
class CliqueUpdate:
    """Where the update of a PodClique stands: its progress, the pods to delete now, and whether it is settled."""

    progress: PodCliqueUpdateProgress | None
    delete: tuple[Pod, ...] = ()
    settled: bool = True


def is_due(clique: PodClique) -> bool:
    """Tell whether an update is under way, or another template than the present one is on record."""
    progress, recorded = clique.status.update_progress, clique.status.current_pod_template_hash
    if progress is not None and progress.update_ended_at is None:
        return True
    return recorded is not None and recorded != clique.metadata.labels.get(marks.POD_TEMPLATE_HASH, "")


def clique_update(
    clique: PodClique, pods: Sequence[Pod], *, generation_hash: str, selected: bool, on_delete: bool, now: datetime
) -> CliqueUpdate:
    """Return the next step; ``selected`` says that it is this clique's turn in the update of its set."""
    expected = clique.metadata.labels.get(marks.POD_TEMPLATE_HASH, "")
    recorded = clique.status.current_pod_template_hash
    progress = clique.status.update_progress
    under_way = progress is not None and progress.update_ended_at is None
    if not is_due(clique) and (recorded == expected or not _has_old(pods, expected)):
        return CliqueUpdate(progress)
    if on_delete:
        return CliqueUpdate(_opened(generation_hash, expected, now, ended=now))
    if not selected:
        return CliqueUpdate(progress, settled=False)
    if progress is None or not under_way or progress.pod_template_hash != expected:
        progress = _opened(generation_hash, expected, now)
    return _step(clique, [pod for pod in pods if is_active(pod)], progress, now)


def _has_old(pods: Sequence[Pod], expected: str) -> bool:
    """Tell whether pods were made from another template: before anything was put on record, only they can tell."""
    return any(is_active(pod) and pod.metadata.labels.get(marks.POD_TEMPLATE_HASH) != expected for pod in pods)


def _step(clique: PodClique, active: Sequence[Pod], progress: PodCliqueUpdateProgress, now: datetime) -> CliqueUpdate:
    old = [pod for pod in active if pod.metadata.labels.get(marks.POD_TEMPLATE_HASH) != progress.pod_template_hash]
    idle = tuple(pod for pod in old if state(pod) is not PodState.READY)
    serving = sorted((pod for pod in old if state(pod) is PodState.READY), key=_age)
    ready = sum(map(is_ready, active))
    ready_new = ready - len(serving)
    replicas = clique.spec.replicas or 0

    selection = progress.ready_pods_selected_to_update or PodsSelectedToUpdate()
    remaining = next((pod for pod in serving if pod.metadata.name == selection.current), None)
    if remaining is not None:
        return CliqueUpdate(progress, (*idle, remaining), settled=False)
    if selection.current:
        # A replacement that was scaled in before it was ready will not come: then nothing is left to wait for.
        under_way = ready < max(len(active), replicas)
        if under_way and ready_new < min(len(selection.completed) + 1, replicas):
            return CliqueUpdate(progress, idle, settled=False)
        selection = PodsSelectedToUpdate(completed=(*selection.completed, selection.current))
        progress = msgspec.structs.replace(progress, ready_pods_selected_to_update=selection)
    if not old:
        if ready_new < min(clique.spec.minimum, replicas):
            return CliqueUpdate(progress, settled=False)
        return CliqueUpdate(msgspec.structs.replace(progress, update_ended_at=now))
    if serving and ready >= min(replicas, clique.spec.minimum + 1):
        taken = serving[0]
        selection = msgspec.structs.replace(selection, current=taken.metadata.name)
        progress = msgspec.structs.replace(progress, ready_pods_selected_to_update=selection)
        return CliqueUpdate(progress, (*idle, taken), settled=False)
    return CliqueUpdate(progress, idle, settled=False)


def _opened(
    generation_hash: str, template_hash: str, now: datetime, *, ended: datetime | None = None
) -> PodCliqueUpdateProgress:
    return PodCliqueUpdateProgress(
        update_started_at=now,
        update_ended_at=ended,
        pod_clique_set_generation_hash=generation_hash,
        pod_template_hash=template_hash,
    )


def _age(pod: Pod) -> tuple[datetime, str]:
    return pod.metadata.creation_timestamp or DISTANT_PAST, pod.metadata.name

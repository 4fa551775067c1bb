"""The labels and annotations by which a pod joins its gang, or says that it is a gang of its own.

The grouper writes them on pods that exist (:mod:`.controller`), and on new ones while they are created
(:mod:`.admission`).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from spinney.api import labels as marks
from spinney.api.core import Pod
from spinney.api.podgang import PodGang
from spinney.api.struct import JSON
from spinney.backends.interface import SchedulerBackend
from spinney.backends.lending import lent
from spinney.explain.amounts import first_few
from spinney.gangs.sources.ungrouped import is_ungrouped
from spinney.grouping import podgangs, selecting
from spinney.grouping.describing import GangDescription

Marks = Mapping[str, Mapping[str, str | None]]
"""A merge patch of ``labels`` and ``annotations``."""

_FIELDS: Final = ("labels", "annotations")


def gang_marks(name: str, gang: PodGang, group: str, backend: SchedulerBackend) -> Marks:
    """Return by what a pod of this name joins a group of a gang, as its scheduler reads it."""
    labels = selecting.gang_labels(gang.metadata.name, group)
    manifest: JSON = {
        "metadata": {"name": name, "labels": {**labels, marks.POD_INDEX: "0"}, "annotations": {}},
        "spec": {},
    }
    backend.prepare_pod(manifest, lent(gang))
    marked: Mapping[str, Any] = manifest["metadata"]
    own = {key: value for key, value in marked["labels"].items() if key != marks.POD_INDEX}
    return {"labels": own, "annotations": marked["annotations"]}


def alone_marks(pod: Pod, gang: GangDescription) -> Marks | None:
    """Return by what a pod says that it is a gang of its own; what it says itself stays. ``None``: it says so.

    What it has from its owners follows them until the pod has a node.
    """
    grouped_as, inherited = pod.metadata.labels.get(marks.GROUPED), _inherited(pod)
    wanted, own = podgangs.alone_labels(gang), as_made(pod).metadata.labels
    given = {key: value for key, value in wanted.items() if not own.get(key) and key != marks.GROUPED}
    noted = {marks.INHERITED: " ".join(sorted(f"{key}={value}" for key, value in given.items()))} if given else {}
    if grouped_as == podgangs.GROUPED_ALONE:
        keys = inherited | given.keys()
        changed = {key: given.get(key) for key in keys if given.get(key) != pod.metadata.labels.get(key)}
        return {"labels": changed, "annotations": noted} if changed and not pod.spec.node_name else None
    left = selecting.leaving(pod) if grouped_as else {}
    labels = {**given, **left.get("labels", {}), marks.GROUPED: podgangs.GROUPED_ALONE}
    return {"labels": labels, "annotations": {**left.get("annotations", {}), **noted}}


def left_marks(pod: Pod) -> Marks | None:
    """Return by what a pod says that it is not grouped and nobody need wait for that. ``None``: nobody does.

    It inherits nothing. What it has of a gang of ours it loses.
    """
    grouped_as = pod.metadata.labels.get(marks.GROUPED)
    if grouped_as == podgangs.GROUPED_ALONE or not (grouped_as or (is_ungrouped(pod) and not pod.spec.node_name)):
        return None
    left = selecting.leaving(pod) if grouped_as else {}
    labels = {**left.get("labels", {}), marks.GROUPED: podgangs.GROUPED_ALONE}
    return {"labels": labels, "annotations": left.get("annotations", {})}


def as_made(pod: Pod) -> Pod:
    """Return a pod without the labels that it was given for its owners' sake: only what it says itself counts."""
    inherited = _inherited(pod)
    if not inherited:
        return pod
    own = {key: value for key, value in pod.metadata.labels.items() if key not in inherited}
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, labels=own))


def _inherited(pod: Pod) -> frozenset[str]:
    """Return the labels that it was given and still has so: one that was changed since is its own.

    A key without a value was noted by an earlier version, and is still taken for given.
    """
    noted = (each.partition("=") for each in pod.metadata.annotations.get(marks.INHERITED, "").split())
    return frozenset(key for key, mark, value in noted if not mark or pod.metadata.labels.get(key, value) == value)


def marked(pod: Pod, added: Marks) -> dict[str, dict[str, str]]:
    """Return the labels and annotations that a pod has with these marks, as far as they change."""
    found: dict[str, dict[str, str]] = {}
    for field in _FIELDS:
        there: Mapping[str, str] = getattr(pod.metadata, field)
        wanted = {key: value for key, value in {**there, **added[field]}.items() if value is not None}
        if wanted != there:
            found[field] = wanted
    return found


def several_schedulers(pods: Sequence[Pod]) -> str:
    """Return that pods of one gang ask for several schedulers, and what to do; empty if one places all of them.

    One process may serve several names: those of pods that all have nodes are served.
    """
    asked: dict[str, list[str]] = {}
    for pod in pods if any(not pod.spec.node_name for pod in pods) else ():
        asked.setdefault(pod.spec.scheduler_name, []).append(pod.metadata.name)
    if len(asked) <= 1:
        return ""
    each = ", ".join(f"{first_few(sorted(names))} for {scheduler}" for scheduler, names in sorted(asked.items()))
    return (
        f"its pods ask for several schedulers ({each}), and one places a gang: "
        "give all the same schedulerName, if no process serves all of these"
    )


def unable(backend: SchedulerBackend) -> str:
    """Return why a scheduler cannot be handed a gang of pods that exist; empty if it can."""
    if backend.capabilities.joins_at_creation:
        return f"{backend.name} learns the group of a pod only when the pod is made"
    return "" if backend.capabilities.gang_scheduling else f"{backend.name} places pods one by one"

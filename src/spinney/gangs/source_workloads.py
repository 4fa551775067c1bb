"""What the grouper made a PodGang for, as the PodGang says: a workload of a user's, and what owns that.

Shells complete these names, so nothing is imported here that takes long.
"""

from collections.abc import Mapping
from typing import NamedTuple

from spinney.api.labels import ABOVE, GROUPED, TOP_OWNER
from spinney.api.meta import ObjectMeta
from spinney.api.podgang import PodGang


class SourceWorkload(NamedTuple):
    """The object of a user's that a gang was made for."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"

    def is_called(self, kind: str, name: str) -> bool:
        """Tell whether a word means this one: its kind in any case, singular or plural; no word means any kind."""
        words = {"", self.kind.lower(), f"{self.kind.lower()}s"}
        return self.name == name and kind.lower().split(".")[0] in words


def workload(pod_gang: PodGang) -> SourceWorkload | None:
    """Return what the grouper made a PodGang for; ``None`` for one that it did not make."""
    return _told(pod_gang.metadata)


def workloads(metadata: ObjectMeta) -> tuple[SourceWorkload, ...]:
    """Return what the grouper made the PodGang with this metadata for, and what owns that, such as a CronJob."""
    own = _told(metadata)
    above = (each for each in metadata.annotations.get(ABOVE, "").split() if "/" in each)
    return (own, *(SourceWorkload(*each.split("/", 1)) for each in above)) if own is not None else ()


def made_for(pod_gang: PodGang, kind: str, name: str) -> SourceWorkload | None:
    """Return the workload called so that the grouper made a PodGang for, or what owns that."""
    return next((each for each in workloads(pod_gang.metadata) if each.is_called(kind, name)), None)


def top_owner(metadata: ObjectMeta) -> Mapping[str, str]:
    """Return what the PodGang with this metadata says of its workload: name, uid, group, version and kind."""
    lines = metadata.annotations.get(TOP_OWNER, "").splitlines()
    said = dict(line.split(": ", 1) for line in lines if ": " in line)
    return {key: value.strip('"') for key, value in said.items()}


def _told(metadata: ObjectMeta) -> SourceWorkload | None:
    if GROUPED not in metadata.labels:
        return None
    said = top_owner(metadata)
    return SourceWorkload(said["kind"], said["name"]) if {"kind", "name"} <= said.keys() else None

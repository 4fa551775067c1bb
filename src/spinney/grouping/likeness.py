"""Pods that are alike: those of one workload often are, and what was found for one of them holds for the others."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from spinney.api.core import Pod
from spinney.grouping.owners import Owner
from spinney.grouping.selecting import without_marks

MOST_SEEN: Final = 10_000
"""How many likenesses of pods are remembered."""
MOST_TEXT: Final = 8192
"""How many characters of labels and annotations one may have: a user who may create pods may write any number."""

T = TypeVar("T")


@dataclass
class Alike(Generic[T]):
    """What was found for pods, by what it follows from. Mutable; forgets what is oldest."""

    _found: dict[Hashable, T] = field(default_factory=dict)

    def get(self, pod: Pod, chain: tuple[Owner, ...]) -> T | None:
        """Return what was found for a pod like this one."""
        return self._found.get(_likeness(pod, chain))

    def put(self, pod: Pod, chain: tuple[Owner, ...], found: T) -> None:
        """Remember what was found for a pod."""
        if _text(pod.metadata.labels) + _text(pod.metadata.annotations) > MOST_TEXT:
            return
        while len(self._found) >= MOST_SEEN:
            del self._found[next(iter(self._found))]
        self._found[_likeness(pod, chain)] = found


def _likeness(pod: Pod, chain: tuple[Owner, ...]) -> Hashable:
    """Return what the place of a pod follows from, unless it is a gang of its own."""
    owners = tuple((owner.metadata.uid, owner.metadata.resource_version) for owner in chain)
    labels, annotations = without_marks(pod.metadata.labels), without_marks(pod.metadata.annotations)
    return owners, pod.metadata.namespace, tuple(labels.items()), tuple(annotations.items())


def _text(texts: Mapping[str, str]) -> int:
    return sum(len(key) + len(value) for key, value in texts.items())

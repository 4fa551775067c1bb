"""What a source needs to know beside the object itself: priorities by class, and what holds where nothing is said."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Final, TypeVar

import msgspec

from spinney.api.durations import parse_duration
from spinney.api.labels import KAI_PREEMPTIBILITY, KAI_QUEUE
from spinney.api.meta import ObjectMeta
from spinney.api.time import parse_timestamp
from spinney.gangs.tree import NON_PREEMPTIBLE_PRIORITY, Gang, GangKey, GroupSet

T = TypeVar("T")

DEFAULT_QUEUE: Final = "default-queue"

BUILT_IN_PRIORITIES: Final = {"train": 50, "build-preemptible": 75, "build": 100, "inference": 125}
DEFAULT_PRIORITY: Final = 50


class SourceContext(msgspec.Struct, frozen=True):
    """Priority classes of the cluster and defaults of the scheduler."""

    priorities: Mapping[str, int] = msgspec.field(default_factory=lambda: dict(BUILT_IN_PRIORITIES))
    default_priority: int = DEFAULT_PRIORITY
    non_preempting: frozenset[str] = frozenset()
    """Priority classes whose ``preemptionPolicy`` is Never; the empty name stands for the default class."""

    def priority(self, class_name: str | None) -> int:
        """Return the value of a priority class; an unknown one counts as the default."""
        return self.priorities.get(class_name or "", self.default_priority)

    def of_class(self, class_name: str) -> tuple[int | None, bool]:
        """Return all that is known of one priority class."""
        return self.priorities.get(class_name), class_name in self.non_preempting

    @property
    def fallback(self) -> tuple[int, bool]:
        """Return what holds for gangs that name no class, or an unknown one."""
        return self.default_priority, "" in self.non_preempting

    def preempts(self, class_name: str) -> bool:
        """Tell whether others may be disturbed for gangs of a priority class; an unknown one counts as the default."""
        return (class_name if class_name in self.priorities else "") not in self.non_preempting

    def gang(
        self, key: GangKey, root: GroupSet, metadata: ObjectMeta, class_name: str | None, priority: int | None = None
    ) -> Gang:
        """Return the gang of an object whose labels say its queue and whether it is preemptible."""
        priority = self.priority(class_name) if priority is None else priority
        return Gang(
            key=key,
            root=root,
            uid=metadata.uid or "",
            queue=self.queue(metadata.labels),
            priority=priority,
            priority_class=class_name or "",
            preemptible=is_preemptible(metadata.labels.get(KAI_PREEMPTIBILITY), priority),
            created=metadata.creation_timestamp,
        )

    def queue(self, *labels: Mapping[str, str]) -> str:
        """Return the queue named by the first of ``labels`` that names one."""
        return next((found for each in labels if (found := each.get(KAI_QUEUE))), DEFAULT_QUEUE)


def is_preemptible(word: str | None, priority: int) -> bool:
    """Tell whether a gang is preemptible: as it says itself, else by its priority."""
    if word == "preemptible":
        return True
    if word == "non-preemptible":
        return False
    return priority < NON_PREEMPTIBLE_PRIORITY


def duration_of(annotations: Mapping[str, str], key: str) -> timedelta | None:
    """Return the duration an annotation carries; ``None`` if it is absent or not a duration."""
    return _read(annotations, key, parse_duration)


def timestamp_of(annotations: Mapping[str, str], key: str) -> datetime | None:
    """Return the time an annotation carries; ``None`` if it is absent or not a time."""
    return _read(annotations, key, parse_timestamp)


def _read(annotations: Mapping[str, str], key: str, parse: Callable[[str], T]) -> T | None:
    text = annotations.get(key)
    try:
        return parse(text) if text else None
    except (ValueError, OverflowError):
        return None

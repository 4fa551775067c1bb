"""Who waits in which queue: light entries, however many, of which the first of each queue are looked at."""

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple

_BEGINNING: Final = datetime.min.replace(tzinfo=UTC)


class WorkloadKey(NamedTuple):
    """A workload: its kind, namespace and name."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind.lower()}/{self.name}"


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """Where a workload stands: the queue, and what decides who comes first in it."""

    queue: str
    priority: int = 0
    created: datetime | None = None


_Turn = tuple[int, datetime, WorkloadKey]


class Backlog:
    """The suspended workloads of each queue in order: priority, then age. Mutable."""

    def __init__(self) -> None:
        self._places: dict[WorkloadKey, QueuePlace] = {}
        self._queues: dict[str, list[_Turn]] = {}

    def __len__(self) -> int:
        return len(self._places)

    def put(self, key: WorkloadKey, place: QueuePlace) -> None:
        """Let a workload wait, or change where it stands."""
        if self._places.get(key) != place:
            self.remove(key)
            self._places[key] = place
            insort(self._queues.setdefault(place.queue, []), _turn(key, place))

    def remove(self, key: WorkloadKey) -> None:
        """Take a workload out, if it is there."""
        place = self._places.pop(key, None)
        if place is not None:
            turns = self._queues[place.queue]
            del turns[bisect_left(turns, _turn(key, place))]
            if not turns:
                del self._queues[place.queue]

    def first(self, of_each: int) -> Iterator[WorkloadKey]:
        """Return the first so many of each queue."""
        for turns in self._queues.values():
            for _, _, key in turns[:of_each]:
                yield key

    def lengths(self) -> Mapping[str, int]:
        """Return how many wait, by queue."""
        return {queue: len(turns) for queue, turns in self._queues.items()}


def _turn(key: WorkloadKey, place: QueuePlace) -> _Turn:
    return (-place.priority, place.created or _BEGINNING, key)

"""Queues and the tree they form.

A tree is built once from whatever defined the queues (Queue objects of a cluster, our own configuration, a behaviour
case) and never changes; the books that are kept about its queues are in :mod:`~spinney.scheduler.fairshare.books`.
Queues are addressed by their position in the tree, parents before children, so that a walk over positions is a walk
from the top down. What cannot be part of a tree (a parent that does not exist, a cycle, what is too deep to be walked
to) is left out with everything below it, and named in ``dropped`` so that a job in such a queue can be told why it
waits.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import NamedTuple

import msgspec

from spinney.gangs.tree import DEEPEST
from spinney.scheduler.fairshare.amounts import NO_BOUND, ZERO, Amounts

DEFAULT_PRIORITY = 100


class Weights(NamedTuple):
    """A queue's part of the surplus of each resource, relative to its siblings; 0 receives none."""

    cpu: float = 1.0
    memory: float = 1.0
    gpu: float = 1.0


class QueueInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a queue is entitled to. The defaults are those of our own configuration, not of KAI's Queue objects."""

    name: str
    parent: str | None = None
    priority: int = DEFAULT_PRIORITY
    quota: Amounts = ZERO
    limit: Amounts = NO_BOUND
    weight: Weights = Weights()
    created: float = 0.0  # any number that orders queues by age: seconds since the epoch, or a rank
    uid: str = ""
    preempt_min_runtime: timedelta | None = None  # None: inherited
    reclaim_min_runtime: timedelta | None = None

    @property
    def age_key(self) -> tuple[float, str, str]:
        """Order queues by age, oldest first; never equal for two queues of one tree."""
        return (self.created, self.uid, self.name)


class QueueTree:
    """Queues by position, parents before children; immutable."""

    def __init__(self, queues: Iterable[QueueInfo]) -> None:
        self.queues, self.dropped = _ordered({queue.name: queue for queue in queues})
        self.index: Mapping[str, int] = {queue.name: position for position, queue in enumerate(self.queues)}
        self.parent: tuple[int, ...] = tuple(
            -1 if queue.parent is None else self.index[queue.parent] for queue in self.queues
        )
        children: list[list[int]] = [[] for _ in self.queues]
        paths: list[tuple[int, ...]] = []
        for position, parent in enumerate(self.parent):
            if parent >= 0:
                children[parent].append(position)
            paths.append((position, *paths[parent]) if parent >= 0 else (position,))
        self.children: tuple[tuple[int, ...], ...] = tuple(map(tuple, children))
        self.paths: tuple[tuple[int, ...], ...] = tuple(paths)

    def __len__(self) -> int:
        return len(self.queues)

    def __contains__(self, name: object) -> bool:
        return name in self.index

    def __getitem__(self, name: str) -> QueueInfo:
        return self.queues[self.index[name]]

    @property
    def roots(self) -> tuple[int, ...]:
        """Return the top-level queues."""
        return tuple(position for position, parent in enumerate(self.parent) if parent < 0)

    def is_leaf(self, position: int) -> bool:
        """Tell whether jobs may sit in this queue."""
        return not self.children[position]

    def path(self, name: str) -> tuple[int, ...]:
        """Return the queue and its ancestors, the queue first."""
        return self.paths[self.index[name]]

    def divergence(self, left: str, right: str) -> tuple[int, int]:
        """Return the two ancestors at the highest level where the paths of two queues differ.

        When one queue lies on the path of the other there is no such level, and the queue itself is returned twice.
        """
        one, two = self.path(left), self.path(right)
        for ancestor, other in zip(reversed(one), reversed(two), strict=False):
            if ancestor != other:
                return ancestor, other
        common = min(one, two, key=len)[0]
        return common, common


def _ordered(by_name: Mapping[str, QueueInfo]) -> tuple[tuple[QueueInfo, ...], Mapping[str, str]]:
    """Return queues in top-down order, oldest sibling first, and why each of the others has no place."""
    below: dict[str | None, list[QueueInfo]] = {}
    for queue in by_name.values():
        below.setdefault(queue.parent, []).append(queue)
    placed: list[QueueInfo] = []
    level = below.get(None, [])
    for _ in range(DEEPEST):
        level = sorted(level, key=lambda queue: queue.age_key)
        placed += level
        level = [child for queue in level for child in below.get(queue.name, [])]
    known = {queue.name for queue in placed}
    return tuple(placed), {
        name: _why_dropped(queue, by_name) for name, queue in sorted(by_name.items()) if name not in known
    }


def _why_dropped(queue: QueueInfo, by_name: Mapping[str, QueueInfo]) -> str:
    seen = {queue.name}
    parent = queue.parent
    while parent is not None and parent in by_name:
        if len(seen) >= DEEPEST:
            return f"queue {queue.name}: {DEEPEST} or more queues are above it, too many; give it another parent"
        if parent in seen:
            return f"queue {queue.name}: its parents form a cycle through {parent}; give one of them another parent"
        seen.add(parent)
        parent = by_name[parent].parent
    return f"queue {queue.name}: parent queue {parent} does not exist; create it or correct parentQueue"

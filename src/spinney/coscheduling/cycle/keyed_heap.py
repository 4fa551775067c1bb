"""A heap of pods by an order, from which any pod can be removed by its key."""

import heapq
from typing import Any

from spinney.coscheduling.framework import QueuedPod
from spinney.kube.keys import Key


class KeyedHeap:
    """Pods by an order. Mutable."""

    def __init__(self) -> None:
        self._heap: list[tuple[Any, int, Key]] = []
        self._entries: dict[Key, tuple[int, QueuedPod]] = {}
        self._number = 0

    def push(self, key: Key, order: Any, queued: QueuedPod) -> None:
        """Add a pod, or move it to a new place in the order."""
        self._number += 1
        self._entries[key] = (self._number, queued)
        heapq.heappush(self._heap, (order, self._number, key))

    def pop(self) -> QueuedPod | None:
        """Remove and return the first pod."""
        self._drop_stale()
        if not self._heap:
            return None
        _, _, key = heapq.heappop(self._heap)
        return self._entries.pop(key)[1]

    def first_key(self) -> Any:
        """Return the order of the first pod, or None."""
        self._drop_stale()
        return self._heap[0][0] if self._heap else None

    def remove(self, key: Key) -> QueuedPod | None:
        """Remove a pod wherever it is."""
        entry = self._entries.pop(key, None)
        return entry[1] if entry else None

    def get(self, key: Key) -> QueuedPod | None:
        """Return a pod without removing it."""
        entry = self._entries.get(key)
        return entry[1] if entry else None

    def _drop_stale(self) -> None:
        while self._heap and self._entries.get(self._heap[0][2], (0, None))[0] != self._heap[0][1]:
            heapq.heappop(self._heap)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __len__(self) -> int:
        return len(self._entries)

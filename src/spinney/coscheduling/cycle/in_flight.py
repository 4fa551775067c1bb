"""Pods in flight: popped from the queue and not yet bound or returned, with the events that arrive meanwhile.

The events are kept and replayed to a pod that is returned, so that a change during its cycle is never missed.
"""

from collections import deque
from collections.abc import Iterator

from spinney.api.resource import Resource
from spinney.coscheduling.framework import Action, ClusterEvent, EventHint, QueuedPod
from spinney.kube.keys import Key


class InFlight:
    """The pods in flight, in the order they were popped, and the events since the first was. Mutable."""

    def __init__(self) -> None:
        self._flying: dict[Key, tuple[QueuedPod, int]] = {}
        """Each with the number of the first event that it may have missed."""
        self._held: dict[Key, QueuedPod] = {}
        self._events: dict[tuple[Resource, Action], deque[tuple[int, ClusterEvent]]] = {}
        self._number = 0

    def __len__(self) -> int:
        return len(self._flying) + len(self._held)

    def find(self, key: Key) -> QueuedPod | None:
        """Return the pod of a name that is in flight."""
        flying = self._flying.get(key)
        return flying[0] if flying is not None else self._held.get(key)

    def begin(self, queued: QueuedPod) -> None:
        self._flying[queued.key] = queued, self._number

    def hold(self, key: Key) -> None:
        """Keep no more events for a pod: it has a node and waits, maybe for long."""
        flying = self._flying.pop(key, None)
        if flying is not None:
            self._held[key] = flying[0]
            self.trim()

    def end(self, key: Key) -> int:
        """Take a pod out and return the number of the first event that it may have missed; :meth:`trim` afterwards."""
        self._held.pop(key, None)
        return self._flying.pop(key, (None, self._number))[1]

    def happened(self, event: ClusterEvent) -> None:
        """Keep an event, if a pod is in flight that may miss it."""
        if self._flying:
            self._events.setdefault((event.resource, event.action), deque()).append((self._number, event))
        self._number += 1

    def missed(self, hint: EventHint, since: int) -> Iterator[ClusterEvent]:
        """Return the events from a number on that a hint is about."""
        for (resource, action), events in self._events.items():
            if resource == hint.resource and action & hint.actions and events[-1][0] >= since:
                yield from (event for number, event in events if number >= since)

    def trim(self) -> None:
        """Drop events that no pod in flight can have missed: those from before the first of them was popped."""
        oldest = next((since for _, since in self._flying.values()), self._number)
        for kind, events in list(self._events.items()):
            while events and events[0][0] < oldest:
                events.popleft()
            if not events:
                del self._events[kind]

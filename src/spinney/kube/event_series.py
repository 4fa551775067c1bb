"""Which events are one: repeated ones are counted, similar ones combined, and each object has a budget.

The figures are those of client-go's EventCorrelator, which Kubernetes' own components use.
"""

from collections import OrderedDict
from collections.abc import Hashable
from datetime import datetime
from typing import Generic, Literal, TypeVar

import msgspec

from spinney.api.events import ObjectReference
from spinney.runtime import Runtime

EventType = Literal["Normal", "Warning"]

V = TypeVar("V")

_REMEMBERED = 4096
_BURST = 25.0
_REFILL_PER_SECOND = 1 / 300
_SIMILAR = 10
_SIMILAR_SECONDS = 600.0


class EventContent(msgspec.Struct, frozen=True):
    """What makes two events the same."""

    about: ObjectReference
    type: EventType
    reason: str
    message: str


class CountedEvent(msgspec.Struct):
    """One event object: how often it happened, and under which name it is stored."""

    name: str
    first: datetime
    last: datetime
    count: int = 0
    stored: bool = False


class EventCorrelator:
    """Finds the event object that an event belongs to. Mutable: it remembers what was recorded lately."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._series: _Recent[CountedEvent] = _Recent()
        self._similar: _Recent[_Similar] = _Recent()
        self._budgets: _Recent[_Budget] = _Recent()

    def correlate(self, event: EventContent) -> tuple[EventContent, CountedEvent] | None:
        """Return what to record, which may stand for many similar events, and count it; ``None`` without budget."""
        now = self._runtime.clock.now()
        event = self._combined(event)
        if not self._afford(event.about):
            return None
        series = self._series.get(event)
        if series is None:
            name = f"{event.about.name}.{self._runtime.random.getrandbits(64):016x}"
            series = self._series.put(event, CountedEvent(name, now, now))
        series.count += 1
        series.last = now
        return event, series

    def _combined(self, event: EventContent) -> EventContent:
        now = self._runtime.clock.monotonic()
        kind = (event.about, event.type, event.reason)
        similar = self._similar.get(kind)
        if similar is None or now - similar.since > _SIMILAR_SECONDS:
            similar = self._similar.put(kind, _Similar(now))
        if event.message in similar.messages or len(similar.messages) < _SIMILAR:
            similar.messages.add(event.message)
            return event
        return EventContent(event.about, event.type, event.reason, "(combined from similar events) see the first ones")

    def _afford(self, about: ObjectReference) -> bool:
        now = self._runtime.clock.monotonic()
        budget = self._budgets.get(about) or self._budgets.put(about, _Budget(_BURST, now))
        budget.tokens = min(_BURST, budget.tokens + (now - budget.at) * _REFILL_PER_SECOND)
        budget.at = now
        if budget.tokens < 1:
            return False
        budget.tokens -= 1
        return True


class _Similar(msgspec.Struct):
    """The different messages of one reason lately."""

    since: float
    messages: set[str] = msgspec.field(default_factory=set)


class _Budget(msgspec.Struct):
    tokens: float
    at: float


class _Recent(Generic[V]):
    """A dictionary that forgets what was not used for longest."""

    def __init__(self) -> None:
        self._values: OrderedDict[Hashable, V] = OrderedDict()

    def get(self, key: Hashable) -> V | None:
        if (value := self._values.get(key)) is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: Hashable, value: V) -> V:
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > _REMEMBERED:
            self._values.popitem(last=False)
        return value

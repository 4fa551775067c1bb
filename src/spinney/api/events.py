"""Events about objects (``v1 Event``)."""

from datetime import datetime

from spinney.api.core import EVENT
from spinney.api.meta import Object
from spinney.api.struct import Struct
from spinney.api.time import MicroTime


class ObjectReference(Struct, frozen=True, kw_only=True):
    """Which object, and optionally which part of it."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class EventSource(Struct, frozen=True, kw_only=True):
    """Who reported."""

    component: str = ""
    host: str = ""


class EventSeries(Struct, frozen=True, kw_only=True):
    """How often it happened again."""

    count: int = 0
    last_observed_time: MicroTime | None = None


class Event(Object, of=EVENT, frozen=True, kw_only=True):
    """Something that happened to an object, for people to read."""

    involved_object: ObjectReference
    reason: str = ""
    message: str = ""
    source: EventSource = EventSource()
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None
    count: int = 0
    type: str = ""
    event_time: MicroTime | None = None
    series: EventSeries | None = None
    action: str = ""
    related: ObjectReference | None = None
    reporting_component: str = ""

"""Events in their two forms: core ``v1`` (which is stored) and ``events.k8s.io/v1``."""

from spinney.api.struct import JSON, fill
from spinney.server.exchange.status import Cause, invalid_value
from spinney.server.kinds.kind import Behaviour

_RENAMED = (
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
)


class EventBehaviour(Behaviour):
    """An event is in the namespace of what it is about, and says who reports it even if that is nobody."""

    def fill_defaults(self, obj: JSON) -> None:
        fill(obj, reportingComponent="", reportingInstance="")

    def validate(self, obj: JSON, old: JSON | None, subresource: str) -> list[Cause]:
        about = (obj.get("involvedObject") or {}).get("namespace")
        if old is not None or not about or about == obj["metadata"].get("namespace"):
            return []
        return [invalid_value("involvedObject.namespace", about, "does not match event.namespace")]


def core_event(event: JSON) -> JSON:
    """Return an ``events.k8s.io/v1`` event as a core event."""
    return _renamed(event, {grouped: core for core, grouped in _RENAMED}, "v1")


def grouped_event(event: JSON) -> JSON:
    """Return a core event as an ``events.k8s.io/v1`` event."""
    return _renamed(event, dict(_RENAMED), "events.k8s.io/v1")


def _renamed(event: JSON, names: dict[str, str], api_version: str) -> JSON:
    renamed = {names.get(name, name): value for name, value in event.items()}
    renamed["apiVersion"] = api_version
    return renamed

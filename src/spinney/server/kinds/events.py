"""Events in their two forms: core ``v1`` (which is stored) and ``events.k8s.io/v1``."""

from spinney.api.struct import JSON

_RENAMED = (
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
)


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

"""Who owns which field (``metadata.managedFields``)."""

from datetime import datetime

from spinney.api.struct import JSON
from spinney.server.kinds import Kind


def own_created(kind: Kind, obj: JSON, manager: str, now: datetime, *, always: bool) -> None:
    """Record the fields of a new object as its creator's."""


def own_updated(
    kind: Kind,
    obj: JSON,
    old: JSON,
    manager: str,
    now: datetime,
    *,
    subresource: str,
    applied: bool,
    always: bool,
) -> None:
    """Record the fields that an update changed as the updater's."""

"""Lists of conditions as values: finding one, setting one, removing one.

A condition list is keyed by type and keeps its order; setting a condition moves its transition time only when its
status changes, which is what readers of "since when" rely on.
"""

from collections.abc import Iterable
from datetime import datetime

import msgspec

from spinney.api.meta import Condition
from spinney.api.time import to_seconds


def find_condition(conditions: Iterable[Condition], kind: str) -> Condition | None:
    """Return the condition of type ``kind``, if present."""
    for condition in conditions:  # a generator expression takes twice as long, and this is asked all the time
        if condition.type == kind:
            return condition
    return None


def is_true(conditions: Iterable[Condition], kind: str) -> bool:
    """Tell whether the condition of type ``kind`` is present and True."""
    condition = find_condition(conditions, kind)
    return condition is not None and condition.status == "True"


def is_false(conditions: Iterable[Condition], kind: str) -> bool:
    """Tell whether the condition of type ``kind`` is present and False; an absent one is neither."""
    condition = find_condition(conditions, kind)
    return condition is not None and condition.status == "False"


def set_condition(conditions: Iterable[Condition], new: Condition, now: datetime) -> tuple[Condition, ...]:
    """Return ``conditions`` with ``new`` in place of the one of its type, or at the end.

    The transition time is kept while the status stays, and is otherwise ``new``'s own or ``now``.
    """
    present = tuple(conditions)
    old = find_condition(present, new.type)
    if old is not None and old.status == new.status and old.last_transition_time is not None:
        moment = old.last_transition_time
    else:
        moment = new.last_transition_time or to_seconds(now)
    settled = msgspec.structs.replace(new, last_transition_time=moment)
    if old is None:
        return (*present, settled)
    return tuple(settled if condition.type == new.type else condition for condition in present)


def remove_condition(conditions: Iterable[Condition], kind: str) -> tuple[Condition, ...]:
    """Return ``conditions`` without the one of type ``kind``."""
    return tuple(condition for condition in conditions if condition.type != kind)

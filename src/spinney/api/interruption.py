"""The annotations by which a gang says how it wants to be disturbed, and what is wrong with them."""

from collections.abc import Iterator, Mapping
from typing import Final

from spinney.api.durations import InvalidDuration, parse_duration
from spinney.api.labels import CHECKPOINT_GRACE, MIN_RUNTIME

DECLARED: Final = (CHECKPOINT_GRACE, MIN_RUNTIME)


def faults(annotations: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Return the annotations that declare nothing because they cannot be read, each with what is wrong."""
    for key in DECLARED:
        if key in annotations:
            try:
                parse_duration(annotations[key])
            except InvalidDuration as error:
                yield key, f"{error}; it is ignored"

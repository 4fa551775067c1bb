"""The durations that a gang states in annotations (how it wants to be disturbed, how long it runs): their faults."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Final

from spinney.api.durations import InvalidDuration, parse_duration
from spinney.api.labels import CHECKPOINT_GRACE, EXPECTED_DURATION, MIN_RUNTIME

DECLARED: Final = (CHECKPOINT_GRACE, MIN_RUNTIME, EXPECTED_DURATION)
SIGTERM: Final = "SIGTERM"
"""Instead of a grace: the signal by which containers are told to end is all that the gang needs to checkpoint."""


def checkpoints_on_sigterm(annotations: Mapping[str, str]) -> bool:
    """Tell whether a gang, or a pod of it, declares that it checkpoints when its containers are told to end."""
    return annotations.get(CHECKPOINT_GRACE) == SIGTERM


def faults(annotations: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Return the annotations that declare nothing because they cannot be read, each with what is wrong."""
    for key in DECLARED:
        if key not in annotations or (key == CHECKPOINT_GRACE and checkpoints_on_sigterm(annotations)):
            continue
        try:
            if parse_duration(annotations[key]) < timedelta(0):
                yield (
                    key,
                    f"{annotations[key]!r} is less than nothing; expected a duration such as 4h30m; it is ignored",
                )
        except InvalidDuration as error:
            signal = f"; {SIGTERM} is the only signal that is sent" if _names_signal(key, annotations[key]) else ""
            yield key, f"{error}{signal}; it is ignored"


def _names_signal(key: str, text: str) -> bool:
    return key == CHECKPOINT_GRACE and text.upper().startswith("SIG")

"""What backends were last told of each gang, so that they are not told again for every change of a pod.

It counts until the next safety resync: that what a backend wrote for a gang was deleted, by hand or with its CRD, is no
event of the gang, and a gang without its group waits for ever.
"""

from typing import Final, Generic, TypeVar

from spinney.kube.controller import RESYNC_SECONDS
from spinney.kube.keys import Key
from spinney.runtime import Clock

T = TypeVar("T")

TOLD_SECONDS: Final = 0.8 * RESYNC_SECONDS
"""How long it counts that a backend was told: less than passes between two resyncs."""


class ToldGangs(Generic[T]):
    """By gang, what its backend was told, as a ``T``, and until when that counts. Mutable."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._told: dict[Key, tuple[T, float]] = {}

    def knows(self, key: Key, content: T) -> bool:
        """Tell whether the backend of a gang need not be told this."""
        told = self._told.get(key)
        return told is not None and told[0] == content and self._clock.monotonic() < told[1]

    def note(self, key: Key, content: T) -> None:
        """Take in that the backend of a gang was told, and that all went well."""
        self._told[key] = content, self._clock.monotonic() + TOLD_SECONDS

    def forget(self, key: Key) -> None:
        """Have the backend of a gang told whatever comes."""
        self._told.pop(key, None)

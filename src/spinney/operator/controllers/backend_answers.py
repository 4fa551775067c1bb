"""What backends have answered, known at once to those who wait for it.

That a backend is ready for a gang is recorded as the gang's condition ``BackendReady``. Pods do not wait for the record
to come back: who asked has told it here, and the record is written with the gang's next status. An answer that was lost
with the process is asked for again.
"""

from collections.abc import Callable

from spinney.api.podgang import PodGang
from spinney.kube.keys import Key
from spinney.operator.desired.gates import backend_ready_message, is_backend_ready


class BackendAnswers:
    """The gangs that backends are ready for, in which structure. Mutable."""

    def __init__(self) -> None:
        self._ready: dict[Key, str] = {}
        self._waiting: list[Callable[[Key], None]] = []

    def subscribe(self, told: Callable[[Key], None]) -> None:
        """Have the keys of gangs told for which a backend has become ready."""
        self._waiting.append(told)

    def ready(self, key: Key, gang: PodGang) -> None:
        """Note that the backend has made what a gang, as it now stands, needs."""
        answer = backend_ready_message(gang)
        if self._ready.get(key) != answer:
            self._ready[key] = answer
            for told in self._waiting:
                told(key)

    def withdraw(self, key: Key) -> None:
        """Note that the backend is not ready any more, or that the gang is gone."""
        self._ready.pop(key, None)

    def is_ready(self, gang: PodGang) -> bool:
        """Say whether the backend has made what a gang, as it now stands, needs."""
        key = Key(gang.metadata.namespace or "", gang.metadata.name)
        return self._ready.get(key) == backend_ready_message(gang) or is_backend_ready(gang)

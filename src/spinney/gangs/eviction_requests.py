"""Which pods were asked to go: as their annotations say, or as is being written right now."""

from collections.abc import Callable, Mapping

from spinney.cluster.pods import PodKey, PodRecord
from spinney.cluster.surroundings import keep
from spinney.gangs.checkpoints import EvictionRequest, request_of


class EvictionRequests:
    """What pods were asked, by pod. Mutable; one writer.

    What is being written counts from when it was decided, until the watch shows it: no later cycle may decide
    differently in between. Only requests of the scheduler at hand count, as ``ours`` tells.
    """

    def __init__(self, ours: Callable[[EvictionRequest], bool] = lambda asked: True) -> None:
        self._ours = ours
        self._said: dict[PodKey, EvictionRequest] = {}
        self._assumed: dict[PodKey, tuple[str, EvictionRequest | None]] = {}

    def __bool__(self) -> bool:
        return bool(self._said or self._assumed)

    def pod_changed(self, key: PodKey, new: PodRecord | None) -> None:
        """Take in what a pod says by now."""
        said = request_of(new.annotations) if new is not None else None
        keep(self._said, key, said if said is not None and self._ours(said) else None)
        assumed = self._assumed.get(key)
        if assumed is not None and (new is None or new.uid != assumed[0] or said == assumed[1]):
            del self._assumed[key]

    def assume(self, key: PodKey, uid: str, asked: EvictionRequest | None) -> None:
        """Count a request, or that there is none, from now on: it is being written."""
        self._assumed[key] = (uid, asked)

    def forget(self, key: PodKey) -> None:
        """Go by what the pod says: a write came to nothing."""
        self._assumed.pop(key, None)

    def of(self, key: PodKey) -> EvictionRequest | None:
        """Return what a pod was asked, if it was."""
        return self._assumed[key][1] if key in self._assumed else self._said.get(key)

    def all(self) -> Mapping[PodKey, EvictionRequest]:
        """Return what every pod was asked that was asked anything."""
        if not self._assumed:
            return self._said
        combined = {**self._said, **{key: asked for key, (_, asked) in self._assumed.items()}}
        return {key: asked for key, asked in combined.items() if asked is not None}

"""Which pods are in which gang, as the rules say: kept up to date pod by pod. Mutable."""

from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from spinney.kube.keys import Key

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class Member:
    """A pod's place: its gang and the group of pods in it, and the owners on which that depends."""

    gang: Key
    group: str
    owners: tuple[str, ...]
    """The uids of its owners."""
    alone: bool = False
    needed: int = 0
    """How many pods the gang cannot do without, as was known when the pod was looked at."""


@dataclass
class Membership:
    """Pods by gang and by owner."""

    _places: dict[Key, Member] = field(default_factory=dict)
    _pods: dict[Key, dict[Key, None]] = field(default_factory=dict)
    _by_owner: dict[str, dict[Key, None]] = field(default_factory=dict)
    _owners: dict[Key, tuple[str, ...]] = field(default_factory=dict)

    def put(self, pod: Key, place: Member) -> Key | None:
        """Give a pod its place; returns the gang that it left, if it was in another."""
        before = self._places.get(pod)
        if before == place:
            return None
        left = self.remove(pod)
        self._places[pod] = place
        self._pods.setdefault(place.gang, {})[pod] = None
        self._depends(pod, place.owners)
        return left if left != place.gang else None

    def refuse(self, pod: Key, owners: tuple[str, ...]) -> Key | None:
        """Take a pod out that may have a place once one of its owners changes; returns the gang that it was in."""
        left = self.remove(pod)
        self._depends(pod, owners)
        return left

    def remove(self, pod: Key) -> Key | None:
        """Take a pod out; returns the gang that it was in."""
        for owner in self._owners.pop(pod, ()):
            _drop(self._by_owner, owner, pod)
        place = self._places.pop(pod, None)
        if place is None:
            return None
        _drop(self._pods, place.gang, pod)
        return place.gang

    def place(self, pod: Key) -> Member | None:
        """Return where a pod belongs."""
        return self._places.get(pod)

    def knows(self, pod: Key) -> bool:
        """Tell whether a pod has a place, or may have one once one of its owners changes."""
        return pod in self._owners

    def pods(self, gang: Key) -> Collection[Key]:
        return tuple(self._pods.get(gang, ()))

    def gangs(self) -> Collection[Key]:
        """Return the gangs that have pods, those too that are one pod on its own."""
        return tuple(self._pods)

    def pods_of_owner(self, uid: str) -> Iterable[Key]:
        """Return the pods that have this object among their owners, with a place or without."""
        return tuple(self._by_owner.get(uid, ()))

    def _depends(self, pod: Key, owners: tuple[str, ...]) -> None:
        self._owners[pod] = owners
        for owner in owners:
            self._by_owner.setdefault(owner, {})[pod] = None


def _drop(index: dict[K, dict[Key, None]], key: K, pod: Key) -> None:
    pods = index[key]
    pods.pop(pod, None)
    if not pods:
        del index[key]

"""Gangs that were bound in part: completed first, or released in bounded time.

A bind may fail half-way and a scheduler may die in the middle of a gang. What was bound keeps its room, and the rest is
placed before anything else (:class:`PartGangs` says which gangs those are). A gang that cannot be completed within the
grace period is released: what was bound of it is evicted, so that it does not hold what others could use.

Only a gang that never had what it needs is part-bound in this sense. One that had, and lost a pod since, is the
business of its owner. Which of the two it is, is remembered from having seen it start; of gangs that were there
before this process, the pods tell: if those that still wait are as old as the first bind, they have waited ever since.
"""

from datetime import datetime

from spinney.api.core import Pod
from spinney.cluster.pods import PodRecord
from spinney.cluster.statuses import ACTIVE_ALLOCATED, PLACED, PodStatus
from spinney.gangs.book import GangMembers
from spinney.gangs.tree import GangKey, is_satisfied_by


class PartGangs:
    """Which gangs are part-bound, and since when. Mutable; told of gangs whenever something may have changed."""

    def __init__(self, *, grace_seconds: float) -> None:
        self._grace = grace_seconds
        self._was_complete: dict[GangKey, bool] = {}
        """Of gangs that were seen with nothing placed, or complete."""
        self._since: dict[GangKey, float] = {}

    @property
    def keys(self) -> frozenset[GangKey]:
        """Return the gangs that are part-bound now."""
        return frozenset(self._since)

    def look(self, key: GangKey, members: GangMembers | None, *, now: float) -> None:
        """Take note of how far a gang has come; ``None`` is a gang that is gone, and one without pods begins anew.

        While the rest of a gang is being bound its time does not begin to run, but neither does it begin anew.
        """
        if members is None or not members.pods:
            self._was_complete.pop(key, None)
            self._since.pop(key, None)
        elif not placed_pods(members):
            self._was_complete[key] = False
            self._since.pop(key, None)
        elif members.has_minimum(PLACED):
            self._was_complete[key] = True
            self._since.pop(key, None)
        elif not members.has_minimum(ACTIVE_ALLOCATED) and self._was_never_complete(key, members):
            self._since.setdefault(key, now)

    def postpone(self, key: GangKey, *, now: float) -> None:
        """Begin a new grace period, for a gang whose release was refused."""
        self._since[key] = now

    def due(self, now: float) -> list[GangKey]:
        """Return the gangs whose grace period is over, the longest part-bound first."""
        return sorted(
            (key for key, since in self._since.items() if now >= since + self._grace),
            key=lambda key: (self._since[key], key),
        )

    @property
    def next_due(self) -> float | None:
        """Return when the next grace period ends, or None if no gang is part-bound."""
        return min(self._since.values()) + self._grace if self._since else None

    def _was_never_complete(self, key: GangKey, members: GangMembers) -> bool:
        seen = self._was_complete.get(key)
        return waits_since_first_bind(members) if seen is None else not seen


def placed_pods(members: GangMembers) -> list[PodRecord]:
    """Return the pods of a gang that are on nodes, in the order they appeared."""
    return [record for _, record in members.pods.values() if record.status in PLACED]


def waits_since_first_bind(members: GangMembers) -> bool:
    """Tell whether a gang would be complete with the pods that were there, and pending, when its first was bound."""
    binds = [moment for record in placed_pods(members) if (moment := bound_at(record.pod)) is not None]
    if not binds:
        return False
    first = min(binds)
    counted: dict[str, int] = {}
    for pod_set, record in members.pods.values():
        old = record.status is PodStatus.PENDING and record.created is not None and record.created <= first
        counted[pod_set] = counted.get(pod_set, 0) + (old or record.status in PLACED)
    return is_satisfied_by(members.gang.root, counted)


def started_at(members: GangMembers) -> datetime | None:
    """Return when a gang got its first pods: as its object says, else when the oldest of them was bound."""
    if members.gang.last_start is not None:
        return members.gang.last_start
    placed = (record for _, record in members.pods.values() if record.status in ACTIVE_ALLOCATED)
    return min((moment for record in placed if (moment := bound_at(record.pod)) is not None), default=None)


def bound_at(pod: Pod) -> datetime | None:
    """Return when a pod was bound, as the API server says."""
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "True":
            return condition.last_transition_time
    return None

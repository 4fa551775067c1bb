"""Victims that are asked before they go, for the pods and groups that the coscheduler places.

The victims of one pod or group go together: if one of their gangs declares that it checkpoints, all of them are asked,
and all are evicted when the last is ready or its time is over. Meanwhile their nodes stay nominated for those that
wait. A request whose pod or group is nominated nowhere any more, because it is gone, was placed or was given up, is
taken back. Everything is on the pods: after a restart it goes on.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Final

from msgspec.structs import replace

from spinney.binding.asking import Asking
from spinney.binding.gang_metrics import GangMetrics
from spinney.cluster.pods import PodRecord
from spinney.cluster.state import PodChange
from spinney.cluster.statuses import PLACED
from spinney.coscheduling.framework import Services
from spinney.gangs.book import GangMembers
from spinney.gangs.checkpoints import (
    Asked,
    EvictionRequest,
    Withdrawn,
    end_of,
    grace_within,
    may_go,
    outcome_of,
    request,
)
from spinney.gangs.tree import GangKey

PREEMPT: Final = "preempt"
Evict = Callable[[PodRecord, PodRecord, str], None]
"""Takes a victim away, the first, for the sake of the second, from a node."""


class AskedVictims:
    """Who was asked, for whom. Mutable through the requests that the scheduler's services have."""

    def __init__(
        self, services: Services, asking: Asking, metrics: GangMetrics, *, most: timedelta, wake: Callable[[], None]
    ) -> None:
        self._services = services
        self._asking = asking
        self._metrics = metrics
        self._most = most
        self._wake = wake

    def pod_changed(self, change: PodChange) -> None:
        """Take in what a pod says: that it was asked, or its answer."""
        requests = self._services.requests
        for record in (change.new, change.old):
            if record is not None:
                requests.pod_changed(record.key, change.new)
                break
        if requests:
            self._wake()

    def ask(self, victims: Sequence[PodRecord], beneficiary: PodRecord) -> bool:
        """Ask the victims of one pod or group; ``False`` if none declares that it checkpoints, so all may go now."""
        services = self._services
        waiting = services.groups.gang_members(beneficiary).gang.key
        gangs = [services.groups.gang_members(victim) for victim in victims]
        graces = [grace_within(members, self._most) for members in gangs]
        if not any(graces) and waiting not in {found.beneficiary for found in services.requests.all().values()}:
            return False
        asked = [
            Asked(each.key, each.uid, members.gang.key, self._request(each, beneficiary, waiting, grace))
            for each, members, grace in zip(victims, gangs, graces, strict=True)
        ]
        self._asking.assume(asked, ())
        services.background(self._asking.ask(asked))
        self._wait_longer(beneficiary, max(graces))
        self._wake()
        return True

    def settle(self, evict: Evict) -> float | None:
        """Evict, wait for or release those that were asked; return in how many seconds to look again, if at all."""
        if not self._services.requests:
            return None
        now = self._services.runtime.clock.now()
        promised = self._services.nominations.all()
        nominees = {self._services.groups.gang_members(each).gang.key: each for each in promised}
        seconds: list[float] = []
        for beneficiary, asked in self._standing().items():
            nominee = nominees.get(beneficiary)
            if nominee is None:
                self._withdraw(asked, f"{beneficiary} is gone, has another place or was given up for now")
            elif all(may_go(members, found, now=now, most=self._most) for _, members, found in asked):
                self._evict(asked, nominee, evict)
            else:
                end = max(end_of(found, now=now, most=self._most) for _, _, found in asked)
                seconds.append((end - now).total_seconds())
        return min(seconds, default=None)

    def _request(
        self, victim: PodRecord, beneficiary: PodRecord, waiting: GangKey, grace: timedelta
    ) -> EvictionRequest:
        """Return what a victim is asked. One that was asked for another keeps the time it was given."""
        message = f"preempted by {waiting} of higher priority"
        found = self._services.requests.of(victim.key)
        if found is not None:
            return replace(found, beneficiary=waiting, message=message)
        now, name = self._services.runtime.clock.now(), beneficiary.pod.spec.scheduler_name
        return request(waiting, now=now, grace=grace, message=message, action=PREEMPT, scheduler=name)

    def _wait_longer(self, beneficiary: PodRecord, grace: timedelta) -> None:
        """Have members that hold a node at Permit hold it while the victims of the others checkpoint."""
        group = self._services.groups.of(beneficiary.key)
        for key in group.waiting if group is not None else ():
            held = self._services.waiting.get(key)
            if held is not None:
                held.extend(grace.total_seconds())

    def _standing(self) -> dict[GangKey, "_Standing"]:
        """Return the pods that were asked and are still there, by the gang they go for."""
        found: dict[GangKey, _Standing] = {}
        for key, asked in self._services.requests.all().items():
            record = self._services.cluster.pod(key)
            if record is not None and record.status in PLACED:
                members = self._services.groups.gang_members(record)
                found.setdefault(asked.beneficiary, []).append((record, members, asked))
        return found

    def _withdraw(self, asked: "_Standing", why: str) -> None:
        withdrawn = [
            Withdrawn(Asked(record.key, record.uid, members.gang.key, found), why) for record, members, found in asked
        ]
        self._asking.assume((), withdrawn)
        self._services.background(self._asking.withdraw(withdrawn))

    def _evict(self, asked: "_Standing", nominee: PodRecord, evict: Evict) -> None:
        for outcome in _outcomes(asked):
            self._metrics.checkpoints.labels(outcome).inc()
        for record, _, _ in asked:
            evict(record, nominee, record.node)
            self._services.requests.assume(record.key, record.uid, None)  # it is leaving from now on


_Standing = list[tuple[PodRecord, GangMembers, EvictionRequest]]
"""Pods that were asked, each with its gang."""


def _outcomes(asked: _Standing) -> Iterable[str]:
    """Return how each gang that was given time came to go."""
    found = {members.gang.key: outcome_of(members, said) for _, members, said in asked if said.waits}
    return found.values()

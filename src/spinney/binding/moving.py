"""Moving gangs off nodes, one at a time: the next is not touched before the last has what it needs again.

Evicting all pods of a node at once breaks every gang that has one there, and they compete for what is free. Here the
pods of one gang are evicted together, all or none of them as disruption budgets allow, and the mover waits until they
are gone and the gang has its minimum of ready pods elsewhere. A scheduler repairs the gang in its domain or moves it
whole meanwhile. A gang that declares that it checkpoints is asked first, as schedulers ask it.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from spinney.api.core import POD
from spinney.api.time import timestamp
from spinney.binding.evicting import SHOWN_PODS
from spinney.cluster.pods import PodKey, PodRecord
from spinney.cluster.state import ClusterState
from spinney.cluster.statuses import PLACED
from spinney.explain.amounts import counted, first_few
from spinney.gangs.book import GangBook, GangMembers
from spinney.gangs.checkpoints import EvictionRequest, grace_of, is_ready, request, time_given
from spinney.gangs.sources import bare
from spinney.gangs.tree import GangKey, PodSet, is_satisfied_by
from spinney.kube.client import Client
from spinney.kube.errors import TooManyRequests
from spinney.kube.reconciling import annotate_exactly, unless_gone
from spinney.kube.retrying import Backoff


class MoveStopped(Exception):
    """A gang did not come back in time; the text says what it lacks."""


@dataclass(frozen=True)
class Leaving:
    """A gang and those of its pods that have to leave."""

    gang: GangKey
    pods: tuple[PodRecord, ...]
    well: bool
    """Whether the gang has its minimum of ready pods, so that it can be waited for until it has it again."""

    def __str__(self) -> str:
        kind = "pod" if self.gang.source == bare.SOURCE else "gang"
        return f"{kind} {self.gang}"


@dataclass(frozen=True, kw_only=True)
class GangMover:
    """Moves gangs off nodes that are closed to new pods."""

    client: Client
    cluster: ClusterState
    gangs: GangBook
    nodes: frozenset[str]
    """Where ready pods do not count."""
    changed: asyncio.Event
    """Set whenever a pod changes."""
    tell: Callable[[str], None]
    """Is told in words how far it has come."""
    gang_seconds: float
    """How long one gang may take; 0: for ever."""
    asks: bool = True
    """Whether gangs that declare that they checkpoint are asked first."""

    def leaving(self, records: Iterable[PodRecord]) -> list[Leaving]:
        """Return the gangs of pods that have to leave, in order of their names."""
        found: dict[GangKey, list[PodRecord]] = {}
        for record in records:
            found.setdefault(self.gangs.membership(record)[0], []).append(record)
        return [
            Leaving(gang, tuple(pods), self._is_well(gang, avoiding=frozenset()))
            for gang, pods in sorted(found.items(), key=lambda each: (each[0].namespace, each[0].name))
        ]

    async def move(self, leaving: Leaving, remaining: Callable[[], list[PodKey]]) -> None:
        """Evict the pods of one gang, wait until none is ``remaining`` and the gang has what it needs elsewhere.

        Raises :class:`MoveStopped` where it does not come back in time.
        """
        if self.asks and leaving.well:
            await self._ask_to_checkpoint(leaving)
        began, evicted = self.client.runtime.clock.monotonic(), False
        try:
            async with asyncio.timeout(self.gang_seconds or None):
                await self.evict(leaving)
                evicted = True
                self.tell(f"{leaving}: {counted(len(leaving.pods), 'pod')} evicted")
                await self._until(partial(self._has_left, leaving, remaining))
        except TimeoutError:
            forbidden = "" if evicted else await self.forbidden(leaving)
            if forbidden:
                raise MoveStopped(f"{leaving} may not leave after {self.gang_seconds:.0f} s: {forbidden}") from None
            raise MoveStopped(self._what_is_missing(leaving, remaining())) from None
        seconds = self.client.runtime.clock.monotonic() - began
        self.tell(f"{leaving}: {'has what it needs again' if leaving.well else 'is gone'} after {seconds:.0f} s")

    async def forbidden(self, leaving: Leaving) -> str:
        """Return which disruption budget forbids the eviction of a pod now, in the API server's words, or nothing."""
        try:
            await self._try(leaving)
        except TooManyRequests as error:
            return _budget(error)
        return ""

    async def evict(self, leaving: Leaving) -> None:
        """Evict the pods of one gang; a budget that forbids one is asked again before any other goes."""
        pauses, told = Backoff(self.client.runtime.random), ""
        while True:
            try:
                await self._try(leaving)
                for record in leaving.pods:
                    await self._evict_pod(record, dry_run=False)
            except TooManyRequests as error:
                if (said := _budget(error)) != told:
                    self.tell(f"{leaving}: waits for a disruption budget: {said}")
                    told = said
                await self.client.runtime.clock.sleep(pauses.next())
            else:
                return

    async def _try(self, leaving: Leaving) -> None:
        for record in leaving.pods:
            await self._evict_pod(record, dry_run=True)

    async def _ask_to_checkpoint(self, leaving: Leaving) -> None:
        """Ask all pods of a gang that declares a grace; wait until one says it is ready, or the time is over."""
        members = self.gangs.members(leaving.gang)
        grace = grace_of(members) if members is not None else None
        if members is None or grace is None or grace <= timedelta(0):
            return
        now = self.client.runtime.clock.now()
        asked = request(leaving.gang, now=now, grace=grace, message="it is moved", action="move", moves_to="")
        pods = [record for _, record in members.pods.values() if record.status in PLACED]

        def ready() -> bool:
            found = self.gangs.members(leaving.gang)
            return found is None or is_ready(found, asked)

        self.tell(f"{leaving}: asked to checkpoint, until {timestamp(asked.by)}")
        await self._say(pods, asked)
        try:
            async with asyncio.timeout(grace.total_seconds()):
                await self._until(ready)
        except TimeoutError:
            self.tell(f"{leaving}: did not say that it is ready")
        finally:
            await self._say(pods, None)

    async def _say(self, pods: Iterable[PodRecord], asked: EvictionRequest | None) -> None:
        """Write until when pods have time to checkpoint, or take it back."""
        for record in pods:
            await annotate_exactly(self.client, POD, record.key, record.uid, time_given(asked))

    async def _evict_pod(self, record: PodRecord, *, dry_run: bool) -> None:
        await unless_gone(self.client.evict(record.namespace, record.name, uid=record.uid, dry_run=dry_run))

    def _has_left(self, leaving: Leaving, remaining: Callable[[], list[PodKey]]) -> bool:
        return not remaining() and (not leaving.well or self._is_well(leaving.gang, avoiding=self.nodes))

    def _is_well(self, gang: GangKey, *, avoiding: frozenset[str]) -> bool:
        """Tell whether a gang has its minimum of ready pods; a single pod is never waited for."""
        members = self.gangs.members(gang)
        if members is None or gang.source == bare.SOURCE:
            return False
        return is_satisfied_by(members.gang.root, _ready(members, avoiding))

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self.changed.clear()
            await self.changed.wait()

    def _what_is_missing(self, leaving: Leaving, remaining: list[PodKey]) -> str:
        members = self.gangs.members(leaving.gang)
        if remaining:
            what = f"not elsewhere yet: {first_few(remaining, SHOWN_PODS)}"
        elif members is None:
            what = "its object is gone"
        else:
            what = f"it has not what it needs elsewhere: {', '.join(_short(members, self.nodes))}"
        return f"{leaving} did not come back within {self.gang_seconds:.0f} s: {what}"


def _budget(error: TooManyRequests) -> str:
    """Return which budget is in the way; the message of the error itself does not name it."""
    return "; ".join(cause.message for cause in error.causes if cause.message) or str(error)


def _ready(members: GangMembers, avoiding: frozenset[str]) -> dict[str, int]:
    """Return how many pods of each set are ready, and stay, on other nodes."""
    found: dict[str, int] = {}
    for pod_set, record in members.pods.values():
        if record.node not in avoiding and record.pod.is_true("Ready") and not record.pod.metadata.deleting:
            found[pod_set] = found.get(pod_set, 0) + 1
    return found


def _short(members: GangMembers, avoiding: frozenset[str]) -> Iterable[str]:
    ready = _ready(members, avoiding)
    pod_sets: Iterable[PodSet] = members.gang.pod_sets.values()
    return [
        f"{each.name} has {ready.get(each.name, 0)} of {each.min_member} ready pods"
        for each in pod_sets
        if ready.get(each.name, 0) < each.min_member
    ]

"""Emptying nodes, one gang at a time: the next is not touched before the last has what it needs again.

A drain that evicts all pods of a node at once breaks every gang that has one there, and they compete for what is free.
Here the nodes are closed first. Then, gang by gang, its pods on these nodes are evicted together, all or none of them
as disruption budgets allow, and the drain waits until they are gone and the gang has its minimum of ready pods
elsewhere. A scheduler repairs the gang in its domain or moves it whole meanwhile. A gang that declares that it
checkpoints is asked first, as schedulers ask it.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final

from spinney.api.core import NODE, POD
from spinney.api.labels import CHECKPOINT_BY
from spinney.api.time import timestamp
from spinney.binding.evicting import shortened
from spinney.binding.repair import PLACED
from spinney.cluster.pods import PodRecord
from spinney.cluster.state import ClusterState
from spinney.cluster.statuses import ACTIVE_USED
from spinney.gangs.book import GangBook, GangMembers
from spinney.gangs.checkpoints import grace_of, is_ready, request
from spinney.gangs.sources import bare
from spinney.gangs.tree import GangKey, PodSet, satisfied
from spinney.kube.backoff import Backoff
from spinney.kube.client import Client
from spinney.kube.errors import Conflict, Invalid, NotFound, TooManyRequests

_DRAINED: Final = "its node is drained"
_MIRROR: Final = "kubernetes.io/config.mirror"


class DrainStopped(Exception):
    """A drain that did not come to its end; the text says at which gang, and what to do."""


@dataclass(frozen=True)
class Leaving:
    """A gang and those of its pods that are on the nodes to be emptied."""

    gang: GangKey
    pods: tuple[PodRecord, ...]
    well: bool
    """Whether the gang has its minimum of ready pods, so that it can be waited for until it has it again."""

    def __str__(self) -> str:
        kind = "pod" if self.gang.source == bare.SOURCE else "gang"
        return f"{kind} {self.gang}"


class Drain:
    """One drain. ``changed`` is set whenever a pod changes; ``tell`` is told in words how far it has come."""

    def __init__(
        self,
        client: Client,
        cluster: ClusterState,
        gangs: GangBook,
        nodes: Collection[str],
        *,
        changed: asyncio.Event,
        tell: Callable[[str], None],
        gang_seconds: float,
        asks: bool = True,
    ) -> None:
        self._client = client
        self._cluster = cluster
        self._gangs = gangs
        self._nodes = frozenset(nodes)
        self._changed = changed
        self._tell = tell
        self._gang_seconds = gang_seconds
        self._asks = asks

    def leaving(self) -> list[Leaving]:
        """Return the gangs that have pods on the nodes, in order of their names."""
        found: dict[GangKey, list[PodRecord]] = {}
        for record in self._on_nodes():
            found.setdefault(self._gangs.membership(record)[0], []).append(record)
        return [
            Leaving(gang, tuple(records), self._is_well(gang, avoiding=frozenset()))
            for gang, records in sorted(found.items(), key=lambda each: (each[0].namespace, each[0].name))
        ]

    async def cordon(self) -> None:
        """Close the nodes to new pods."""
        for name in sorted(self._nodes):
            await self._client.patch(NODE, name, {"spec": {"unschedulable": True}})
            self._tell(f"node {name} cordoned")

    async def run(self) -> None:
        """Close the nodes and empty them; raises :class:`DrainStopped` where a gang does not come back in time."""
        await self.cordon()
        while leaving := self.leaving():
            each = leaving[0]
            if self._asks and each.well:
                await self._ask_to_checkpoint(each)
            began = self._client.runtime.clock.monotonic()
            try:
                async with asyncio.timeout(self._gang_seconds or None):
                    await self.evict(each)
                    self._tell(f"{each}: {len(each.pods)} pods evicted")
                    await self._until(partial(self._has_left, each))
            except TimeoutError:
                raise DrainStopped(self._what_is_missing(each)) from None
            seconds = self._client.runtime.clock.monotonic() - began
            self._tell(f"{each}: {'has what it needs again' if each.well else 'is gone'} after {seconds:.0f} s")

    async def evict(self, leaving: Leaving, *, dry_run: bool = False) -> None:
        """Evict the pods of one gang, all or none; budgets that forbid it are asked again."""
        pauses, told = Backoff(self._client.runtime.random), False
        while True:
            try:
                for record in leaving.pods:
                    await self._ask(record, dry_run=True)
                for record in leaving.pods if not dry_run else ():
                    await self._ask(record, dry_run=False)
            except TooManyRequests as error:
                if dry_run:
                    raise
                if not told:
                    self._tell(f"{leaving}: waits for a disruption budget: {error}")
                    told = True
                await self._client.runtime.clock.sleep(pauses.next())
            else:
                return

    async def _ask_to_checkpoint(self, leaving: Leaving) -> None:
        """Ask all pods of a gang that declares a grace; wait until one says it is ready, or the time is over."""
        members = self._gangs.members(leaving.gang)
        grace = grace_of(members) if members is not None else None
        if members is None or grace is None or grace <= timedelta(0):
            return
        now = self._client.runtime.clock.now()
        asked = request(leaving.gang, now=now, grace=grace, message=_DRAINED, action="drain", moves_to="")
        pods = [record for _, record in members.pods.values() if record.status in PLACED]

        def ready() -> bool:
            found = self._gangs.members(leaving.gang)
            return found is None or is_ready(found, asked)

        self._tell(f"{leaving}: asked to checkpoint, until {timestamp(asked.by)}")
        await self._say(pods, timestamp(asked.by))
        try:
            async with asyncio.timeout(grace.total_seconds()):
                await self._until(ready)
        except TimeoutError:
            self._tell(f"{leaving}: did not say that it is ready")
        finally:
            await self._say(pods, None)

    async def _say(self, pods: Iterable[PodRecord], by: str | None) -> None:
        """Write until when pods have time to checkpoint, or take it back."""
        for record in pods:
            patch = {"metadata": {"uid": record.uid, "annotations": {CHECKPOINT_BY: by}}}
            try:
                await self._client.patch(POD, record.name, patch, record.namespace)
            except (NotFound, Conflict, Invalid):
                continue  # gone, or another pod by now

    async def _ask(self, record: PodRecord, *, dry_run: bool) -> None:
        try:
            await self._client.evict(record.namespace, record.name, uid=record.uid, dry_run=dry_run)
        except (NotFound, Conflict):
            return  # gone, or another pod by now

    def _on_nodes(self) -> Iterator[PodRecord]:
        """Return the pods that have to leave: not those that belong to their node, nor those that have ended."""
        for record in self._cluster.pods():
            owner = record.pod.metadata.controller
            daemon = owner is not None and owner.kind == "DaemonSet"
            stays = daemon or _MIRROR in record.annotations or record.status not in ACTIVE_USED
            if record.node in self._nodes and not stays and not self._is_lost(record):
                yield record

    def _is_lost(self, record: PodRecord) -> bool:
        """Tell whether a pod is terminating on a node that is silent: nobody can say when it is gone."""
        row = self._cluster.table.find(record.node)
        silent = row is not None and not self._cluster.table.ready[row]
        return silent and record.pod.metadata.deleting

    def _has_left(self, leaving: Leaving) -> bool:
        there = {record.uid for record in self._on_nodes()}
        if any(record.uid in there for record in leaving.pods):
            return False
        return not leaving.well or self._is_well(leaving.gang, avoiding=self._nodes)

    def _is_well(self, gang: GangKey, *, avoiding: frozenset[str]) -> bool:
        """Tell whether a gang has its minimum of ready pods; a single pod counts if something makes it anew."""
        members = self._gangs.members(gang)
        if members is None or gang.source == bare.SOURCE:
            return False
        ready = _ready(members, avoiding)
        return satisfied(members.gang.root, lambda pod_set: ready.get(pod_set.name, 0))

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._changed.clear()
            await self._changed.wait()

    def _what_is_missing(self, leaving: Leaving) -> str:
        there = {record.uid for record in self._on_nodes()}
        left = [record.key for record in leaving.pods if record.uid in there]
        if left:
            what = f"{shortened(left)} are still on the nodes"
        else:
            members = self._gangs.members(leaving.gang)
            short = ", ".join(_short(members, self._nodes)) if members is not None else "its object is gone"
            what = f"it has not what it needs elsewhere: {short}"
        return (
            f"{leaving} did not come back within {self._gang_seconds:.0f} s: {what}; the nodes stay cordoned and other "
            "gangs were not touched. See `spinney why`, then run the drain again"
        )


def _ready(members: GangMembers, avoiding: frozenset[str]) -> dict[str, int]:
    """Return how many pods of each set are ready, and stay, on other nodes."""
    counted: dict[str, int] = {}
    for pod_set, record in members.pods.values():
        if record.node not in avoiding and record.pod.is_true("Ready") and not record.pod.metadata.deleting:
            counted[pod_set] = counted.get(pod_set, 0) + 1
    return counted


def _short(members: GangMembers, avoiding: frozenset[str]) -> Iterable[str]:
    ready = _ready(members, avoiding)
    pod_sets: Iterable[PodSet] = members.gang.pod_sets.values()
    return [
        f"{each.name} has {ready.get(each.name, 0)} of {each.min_member} ready pods"
        for each in pod_sets
        if ready.get(each.name, 0) < each.min_member
    ]

"""Calling a gang complete and taking away what it consists of, never both at once.

That a gang is Initialized is written because all its pods are there. The request is on its way when another controller
finds that some of them must go: its group was scaled in, its template changed. So whoever deletes a PodClique or a pod
says so first, and waits while its gang is being called complete; and a gang is not called complete while the caches
still show something that was asked to go. Whether that has gone, or the request was lost, is then asked for.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from spinney.api import labels as marks
from spinney.api.core import POD, Pod
from spinney.api.grove import POD_CLIQUE, PodClique
from spinney.kube.cache import Change
from spinney.kube.client import Client
from spinney.kube.errors import NotFound
from spinney.kube.keys import Key
from spinney.operator.caches import Caches

Part: TypeAlias = PodClique | Pod


@dataclass
class _Asked:
    """How often something was asked to go, and how many of these requests have not ended. Mutable."""

    times: int = 0
    under_way: int = 0


class Departures:
    """What was asked to go and is still shown, and the gangs being called complete. Mutable."""

    def __init__(self, client: Client, caches: Caches) -> None:
        self._client = client
        self._caches = caches
        self._leaving: dict[str, _Asked] = {}
        self._completing: dict[Key, asyncio.Event] = {}
        caches.cliques.subscribe(self._observe)
        caches.pods.subscribe(self._observe)

    @asynccontextmanager
    async def taking(self, *parts: Part) -> AsyncIterator[None]:
        """Take parts of gangs away inside the block, which begins when none of these gangs is being called complete."""
        for part in parts:
            asked = self._leaving.setdefault(_uid(part), _Asked())
            asked.times += 1
            asked.under_way += 1
        try:
            for gang in {_gang(part): None for part in parts}:
                if (done := self._completing.get(gang)) is not None:
                    await done.wait()
            yield
        finally:
            for part in parts:
                self._ended(part)

    @contextmanager
    def completing(self, gang: Key) -> Iterator[None]:
        """Call a gang complete inside the block; ask :meth:`is_any_leaving` first, and do not wait in between."""
        done = self._completing[gang] = asyncio.Event()
        try:
            yield
        finally:
            del self._completing[gang]
            done.set()

    async def is_any_leaving(self, parts: Iterable[Part]) -> bool:
        """Say whether any part was asked to go; one that turns out to have stayed is not held against the next."""
        leaving = [part for part in parts if _uid(part) in self._leaving] if self._leaving else []
        for part in leaving:
            await self._look_after(part)
        return bool(leaving)

    async def _look_after(self, part: Part) -> None:
        asked = self._leaving.get(_uid(part))
        if asked is None or asked.under_way:
            return
        times = asked.times
        if await self._has_stayed(part) and asked.times == times:
            self._leaving.pop(_uid(part), None)

    async def _has_stayed(self, part: Part) -> bool:
        resource, metadata = POD if isinstance(part, Pod) else POD_CLIQUE, part.metadata
        try:
            found = await self._client.get(resource, metadata.name, metadata.namespace, type=type(part))
        except NotFound:
            return False
        return found.metadata.uid == metadata.uid and not found.metadata.deleting

    def _ended(self, part: Part) -> None:
        if (asked := self._leaving.get(_uid(part))) is not None:
            asked.under_way -= 1
            shown = self._shown(part)
            if shown is None or _uid(shown) != _uid(part):
                del self._leaving[_uid(part)]

    def _shown(self, part: Part) -> Part | None:
        key = Key(part.metadata.namespace or "", part.metadata.name)
        return self._caches.pods.get(key) if isinstance(part, Pod) else self._caches.cliques.get(key)

    def _observe(self, change: Change[PodClique] | Change[Pod]) -> None:
        if change.new is None and change.old is not None:
            self._leaving.pop(_uid(change.old), None)


def _uid(part: Part) -> str:
    return part.metadata.uid or ""


def _gang(part: Part) -> Key:
    return Key(part.metadata.namespace or "", part.metadata.labels.get(marks.POD_GANG, ""))

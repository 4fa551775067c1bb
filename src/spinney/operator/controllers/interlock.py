"""What controllers are doing with a gang right now, so that no two of them contradict each other.

* **Backend.** That a backend is ready for a gang is recorded as its condition ``BackendReady``. Pods do not wait until
  the record comes back: it is known here at once. A record that is lost with the process is asked for again.
* **Gates.** A gate is opened because its gang exists. Who deletes a gang closes it first: no further gate is opened,
  and requests under way are waited for.
* **Members.** A gang is ``Initialized`` because all its pods exist. Who deletes a PodClique or a pod waits while
  ``Initialized`` of its gang is being written. That is not written while the caches still show a member whose deletion
  was requested; whether it is gone, or the request was lost, is then asked for.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from spinney.api import labels as marks
from spinney.api.core import POD, Pod
from spinney.api.grove import POD_CLIQUE, PodClique
from spinney.api.podgang import PodGang
from spinney.kube.cache import Change
from spinney.kube.client import Client
from spinney.kube.errors import NotFound
from spinney.kube.keys import Key, key_of
from spinney.operator.caches import Caches
from spinney.operator.desired.gates import backend_ready_message, is_backend_ready

Member: TypeAlias = PodClique | Pod


class GangInterlock:
    """The state of each gang between controllers. Mutable.

    ``shown`` finds a member in the caches; ``exists`` asks the API server whether it is there and stays.
    """

    def __init__(self, shown: Callable[[Member], Member | None], exists: Callable[[Member], Awaitable[bool]]) -> None:
        self._shown = shown
        self.exists = exists
        self._ready: dict[Key, str] = {}
        self._subscribers: list[Callable[[Key], None]] = []
        self._closed: set[str] = set()
        self._gates = _Requests()
        self._initializing = _Requests()
        self._deleted: dict[str, _Deletion] = {}

    @classmethod
    def of(cls, client: Client, caches: Caches) -> "GangInterlock":
        """Return the interlock of an operator, which forgets deleted members as the caches do."""

        def shown(member: Member) -> Member | None:
            key = key_of(member)
            return caches.pods.get(key) if isinstance(member, Pod) else caches.cliques.get(key)

        async def exists(member: Member) -> bool:
            resource, metadata = POD if isinstance(member, Pod) else POD_CLIQUE, member.metadata
            try:
                found = await client.get(resource, metadata.name, metadata.namespace, type=type(member))
            except NotFound:
                return False
            return found.metadata.uid == metadata.uid and not found.metadata.deleting

        interlock = cls(shown, exists)
        caches.cliques.subscribe(interlock.observe)
        caches.pods.subscribe(interlock.observe)
        return interlock

    # -- backend -------------------------------------------------------------------------------------------------------

    def on_backend_ready(self, wake: Callable[[Key], None]) -> None:
        """Call ``wake`` with the key of each gang for which a backend becomes ready."""
        self._subscribers.append(wake)

    def backend_ready(self, key: Key, gang: PodGang) -> None:
        """Note that the backend has made what a gang, as it now stands, needs."""
        ready_for = backend_ready_message(gang)
        if self._ready.get(key) != ready_for:
            self._ready[key] = ready_for
            for wake in self._subscribers:
                wake(key)

    def backend_unready(self, key: Key) -> None:
        """Note that the backend is not ready any more, or that the gang is gone."""
        self._ready.pop(key, None)

    def is_backend_ready(self, gang: PodGang) -> bool:
        """Tell whether the backend has made what a gang, as it now stands, needs."""
        key = key_of(gang)
        return self._ready.get(key) == backend_ready_message(gang) or is_backend_ready(gang)

    # -- gates ---------------------------------------------------------------------------------------------------------

    @contextmanager
    def opening_gate(self, gang: PodGang) -> Iterator[bool]:
        """Open a gate inside the block; yields whether that is still allowed."""
        if _uid(gang) in self._closed:
            yield False
            return
        with self._gates.under_way(_uid(gang)):
            yield True

    async def close(self, gang: PodGang) -> None:
        """Allow no further gate, and wait for those being opened."""
        self._closed.add(_uid(gang))
        await self._gates.ended(_uid(gang))

    def reopen(self, gang: PodGang) -> None:
        """Allow gates again: the gang is wanted after all, or it is gone and nobody will ask. Ends any wait for it."""
        self._closed.discard(_uid(gang))
        self._gates.wake(_uid(gang))

    # -- members -------------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def deleting(self, *members: Member) -> AsyncIterator[None]:
        """Delete members inside the block, which begins when no gang of theirs is being written ``Initialized``."""
        for member in members:
            deletion = self._deleted.setdefault(_uid(member), _Deletion())
            deletion.requests += 1
            deletion.under_way += 1
        try:
            for gang in {_gang(member): None for member in members}:
                await self._initializing.ended(gang)
            yield
        finally:
            for member in members:
                self._ended(member)

    @contextmanager
    def initializing(self, gang: Key) -> Iterator[None]:
        """Write ``Initialized`` inside the block; ask :meth:`is_any_deleted` first, and do not wait in between."""
        with self._initializing.under_way(gang):
            yield

    async def is_any_deleted(self, members: Iterable[Member]) -> bool:
        """Tell whether the deletion of a member was asked for; one that turns out to stay counts for the last time."""
        deleted = [member for member in members if _uid(member) in self._deleted] if self._deleted else []
        for member in deleted:
            await self._verify(member)
        return bool(deleted)

    def observe(self, change: Change[PodClique] | Change[Pod]) -> None:
        """Forget a member that the caches no longer show."""
        if change.new is None and change.old is not None:
            self._deleted.pop(_uid(change.old), None)

    async def _verify(self, member: Member) -> None:
        deletion = self._deleted.get(_uid(member))
        if deletion is None or deletion.under_way:
            return
        requests = deletion.requests
        if await self.exists(member) and deletion.requests == requests:
            self._deleted.pop(_uid(member), None)

    def _ended(self, member: Member) -> None:
        if (deletion := self._deleted.get(_uid(member))) is not None:
            deletion.under_way -= 1
            shown = self._shown(member)
            if shown is None or _uid(shown) != _uid(member):
                del self._deleted[_uid(member)]


@dataclass
class _Deletion:
    """How often a deletion was requested, and how many of these requests have not ended. Mutable."""

    requests: int = 0
    under_way: int = 0


class _Requests:
    """How many requests are under way for each key, and who waits for their end. Mutable."""

    def __init__(self) -> None:
        self._count: Counter[Hashable] = Counter()
        self._waited_for: dict[Hashable, asyncio.Event] = {}

    @contextmanager
    def under_way(self, key: Hashable) -> Iterator[None]:
        self._count[key] += 1
        try:
            yield
        finally:
            self._count[key] -= 1
            if not self._count[key]:
                del self._count[key]
                self.wake(key)

    async def ended(self, key: Hashable) -> None:
        if self._count[key]:
            await self._waited_for.setdefault(key, asyncio.Event()).wait()

    def wake(self, key: Hashable) -> None:
        if (event := self._waited_for.pop(key, None)) is not None:
            event.set()


def _uid(item: Member | PodGang) -> str:
    return item.metadata.uid or ""


def _gang(member: Member) -> Key:
    return Key(member.metadata.namespace or "", member.metadata.labels.get(marks.POD_GANG, ""))

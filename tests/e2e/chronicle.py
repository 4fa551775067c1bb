"""What the API server committed, from its watches: the present state, the whole log, and a way to wait.

Every kind is watched on a stream of its own. Revisions are drawn from one counter, so the log of all streams, sorted by
revision, is the order of commits; :mod:`tests.e2e.invariants` judges it in that order.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import msgspec

from spinney.api.core import EVENT, NODE, POD, Node, Pod
from spinney.api.events import Event
from spinney.api.grove import (
    POD_CLIQUE,
    POD_CLIQUE_SCALING_GROUP,
    POD_CLIQUE_SET,
    PodClique,
    PodCliqueScalingGroup,
    PodCliqueSet,
)
from spinney.api.podgang import POD_GANG, PodGang
from spinney.api.resource import Resource
from spinney.kube.client import Client

KINDS: dict[Resource, type[Any]] = {
    NODE: Node,
    POD_CLIQUE_SET: PodCliqueSet,
    POD_CLIQUE_SCALING_GROUP: PodCliqueScalingGroup,
    POD_CLIQUE: PodClique,
    POD_GANG: PodGang,
    POD: Pod,
    EVENT: Event,
}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Happening:
    """One committed write: the object as it was after it, or as it last was."""

    revision: int
    kind: type[Any]
    gone: bool
    object: Any
    inherited: bool = False  # it was there before anybody looked
    before: Any | None = None  # the object before it, unless it is new

    @property
    def name(self) -> str:
        name: str = self.object.metadata.name
        return name

    @property
    def moved(self) -> bool:
        """Tell whether something is otherwise than before, and not only said again, or in other words.

        A scheduler may word its answer anew in every cycle for as long as a gang waits.
        """
        if self.kind is Event:
            return False
        return self.gone or self.before is None or _wordless(self.before) != _wordless(self.object)

    def __str__(self) -> str:
        return f"{self.kind.__name__} {self.name} at revision {self.revision}"


class Chronicle:
    """The objects of a namespace, and its nodes, as followed from the beginning. Mutable; grows until it is closed."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._state: dict[type[Any], dict[str, Any]] = defaultdict(dict)
        self._log: list[Happening] = []
        self._changed = asyncio.Event()

    async def begin(self, tasks: asyncio.TaskGroup) -> list[asyncio.Task[None]]:
        """Read what is there and follow it from then on; returns the tasks that do."""
        followers = []
        for resource, kind in KINDS.items():
            namespace = self._namespace if resource.namespaced else None
            listing = await self._client.list(resource, namespace, type=kind)
            for found in listing.items:
                self._take(Happening(_revision(found), kind, gone=False, object=found, inherited=True))
            following = self._follow(resource, kind, namespace, listing.resource_version)
            followers.append(tasks.create_task(following, name=f"chronicle of {resource}"))
        return followers

    def all(self, kind: type[T]) -> dict[str, T]:
        """Return the objects of a kind, by name."""
        return self._state[kind]

    def log(self, *, since: int = 0) -> list[Happening]:
        """Return what happened after a revision, in the order it was committed."""
        return sorted((each for each in self._log if each.revision > since), key=lambda each: each.revision)

    @property
    def revision(self) -> int:
        """Return the newest revision seen."""
        return max((each.revision for each in self._log), default=0)

    async def until(self, condition: Callable[[], bool], *, within: float) -> None:
        """Wait until what was seen meets a condition, looking again at every change; raises TimeoutError."""
        async with asyncio.timeout(within):
            while not condition():
                await self.change()

    async def change(self) -> None:
        """Wait for the next change."""
        self._changed.clear()
        await self._changed.wait()

    async def rest(self, quiet: float, *, within: float) -> None:
        """Wait until nothing has moved for ``quiet`` seconds; raises TimeoutError, which names what moved last."""
        now = asyncio.get_running_loop().time
        end, resting = now() + within, now() + quiet
        looked_at, moving = len(self._log), list[Happening]()
        while True:
            try:
                async with asyncio.timeout_at(min(resting, end)):
                    await self.change()
            except TimeoutError:
                if resting <= end:
                    return
                raise TimeoutError(f"still moving after {within} s: {', '.join(map(str, moving))}") from None
            moved = [each for each in self._log[looked_at:] if each.moved]
            looked_at = len(self._log)
            if moved:
                moving, resting = moved, now() + quiet

    async def complete(self, *, within: float) -> None:
        """Wait until every stream has delivered what the server has now; raises TimeoutError, which names what lacks.

        Somebody may be writing still: an event is written when its writer comes to it.
        """
        for resource, kind in KINDS.items():
            await self._complete(resource, kind, within)

    async def _complete(self, resource: Resource, kind: type[Any], within: float) -> None:
        listing = await self._client.list(resource, self._namespace if resource.namespaced else None, type=kind)
        stored = {found.metadata.name: _revision(found) for found in listing.items}
        listed = int(listing.resource_version)
        try:
            await self.until(lambda: not self._behind(kind, stored, listed), within=within)
        except TimeoutError:
            lacking = ", ".join(self._behind(kind, stored, listed))
            raise TimeoutError(f"the watch of {resource} said nothing for {within} s about {lacking}") from None

    def _behind(self, kind: type[Any], stored: Mapping[str, int], listed: int) -> list[str]:
        """Return which objects of a kind were otherwise, when it was listed, than their stream has delivered since."""
        seen = {each.name: each.revision for each in self._log if each.kind is kind}
        unseen = [name for name, revision in stored.items() if seen.get(name, 0) < revision]
        return unseen + [name for name in self._state[kind] if name not in stored and seen[name] <= listed]

    async def _follow(self, resource: Resource, kind: type[Any], namespace: str | None, version: str) -> None:
        """Follow a kind; a server ends every watch after some time, and it goes on where that one left off."""
        while True:
            watch = self._client.watch(resource, namespace, type=kind, resource_version=version)
            async for event in watch:
                version = event.object.metadata.resource_version
                self._take(Happening(_revision(event.object), kind, gone=event.type == "DELETED", object=event.object))

    def _take(self, happening: Happening) -> None:
        before = self._state[happening.kind].get(happening.name)
        self._log.append(replace(happening, before=before))
        if happening.gone:
            self._state[happening.kind].pop(happening.name, None)
        else:
            self._state[happening.kind][happening.name] = happening.object
        self._changed.set()


def pods_over_time(log: list[Happening]) -> Iterator[tuple[int, dict[str, Pod]]]:
    """Yield each revision that wrote a pod, and the pods there are after it, by name: one mapping, changed in place."""
    pods: dict[str, Pod] = {}
    for each in log:
        if each.kind is Pod:
            if each.gone:
                pods.pop(each.name, None)
            else:
                pods[each.name] = each.object
            yield each.revision, pods


def _wordless(found: Any) -> Any:
    """Return an object without its version, and of its conditions only whether they hold."""
    unversioned = {"resource_version": "", "managed_fields": ()}
    known = {name: value for name, value in unversioned.items() if hasattr(found.metadata, name)}
    holding = tuple((each.type, each.status) for each in found.status.conditions)
    return msgspec.structs.replace(
        found,
        metadata=msgspec.structs.replace(found.metadata, **known),
        status=msgspec.structs.replace(found.status, conditions=holding),
    )


def _revision(found: Any) -> int:
    return int(found.metadata.resource_version)

"""What the API server committed, from its watches: the present state, the whole log, and a way to wait.

Every kind is watched on a stream of its own. Revisions are drawn from one counter, so the log of all streams, sorted by
revision, is the order of commits; :mod:`tests.e2e.invariants` judges it in that order.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

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

    @property
    def name(self) -> str:
        name: str = self.object.metadata.name
        return name


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

    async def complete(self) -> None:
        """Wait until every stream has delivered what the server has; nobody may be writing any more."""
        for resource, kind in KINDS.items():
            namespace = self._namespace if resource.namespaced else None
            listing = await self._client.list(resource, namespace, type=kind)
            stored = {found.metadata.name: found.metadata.resource_version for found in listing.items}
            while {name: seen.metadata.resource_version for name, seen in self._state[kind].items()} != stored:
                await self.change()

    async def _follow(self, resource: Resource, kind: type[Any], namespace: str | None, version: str) -> None:
        """Follow a kind; a server ends every watch after some time, and it goes on where that one left off."""
        while True:
            watch = self._client.watch(resource, namespace, type=kind, resource_version=version)
            async for event in watch:
                version = event.object.metadata.resource_version
                self._take(Happening(_revision(event.object), kind, gone=event.type == "DELETED", object=event.object))

    def _take(self, happening: Happening) -> None:
        self._log.append(happening)
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


def _revision(found: Any) -> int:
    return int(found.metadata.resource_version)

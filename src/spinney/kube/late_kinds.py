"""Kinds that an API server begins to serve after a process has begun, such as those of a CRD installed later."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

import structlog

from spinney.api.resource import Resource
from spinney.kube.cache import WatchCache
from spinney.kube.client import Client
from spinney.kube.discovery import served
from spinney.kube.errors import KubeError
from spinney.kube.troubles import Troubles

log = structlog.get_logger()

DISCOVERY_SECONDS: Final = 60.0
"""Between looks for kinds that were not served before."""

Follow = Callable[[WatchCache[Any]], None]


class LateKinds:
    """Looks for kinds that are not served yet, and reads each once it is. Mutable: it knows who wants to follow which.

    ``watch`` makes the cache of a kind, which runs here; all who follow the kind share it.
    """

    def __init__(self, client: Client, watch: Callable[[Resource, type[Any]], WatchCache[Any]]) -> None:
        self._client = client
        self._watch = watch
        self._missing: dict[Resource, tuple[type[Any], list[Follow]]] = {}
        self._troubles = Troubles()

    def add(self, kinds: Mapping[Resource, type[Any]], follow: Follow) -> None:
        """Have ``follow`` called with the cache of each of these kinds that comes to be served."""
        for resource, kind in kinds.items():
            self._missing.setdefault(resource, (kind, []))[1].append(follow)

    async def run(self) -> None:
        """Look once in a while until cancelled, and keep the caches of what was found up to date."""
        async with asyncio.TaskGroup() as tasks:
            while self._missing:
                await self._client.runtime.clock.sleep(DISCOVERY_SECONDS)
                for cache in await self._appeared():
                    tasks.create_task(cache.run(), name=f"cache of {cache.resource}")
            await asyncio.get_running_loop().create_future()

    async def _appeared(self) -> list[WatchCache[Any]]:
        """Return the caches of kinds that are served now, each with all who follow it."""
        try:
            found = await served(self._client, self._missing)
        except KubeError as error:
            say = log.warning if self._troubles.is_new(error) else log.debug
            say("kinds not discovered", error=str(error))
            return []
        self._troubles.end()
        caches = []
        for resource in [each for each in self._missing if each in found]:
            log.info("kind appeared", resource=str(resource))
            kind, followers = self._missing.pop(resource)
            cache = self._watch(resource, kind)
            for follow in followers:
                follow(cache)
            caches.append(cache)
        return caches

"""``scheduleStartTime`` of scheduler-plugins' PodGroups: written when the first member has a node, and never again."""

import asyncio
from typing import Final

import structlog

from spinney.api import coscheduling
from spinney.api.time import timestamp
from spinney.gangs.sources import coscheduling as coscheduling_source
from spinney.gangs.tree import GangKey
from spinney.kube.cache import Change, WatchCache
from spinney.kube.errors import KubeError
from spinney.kube.keys import Key
from spinney.kube.manager import Manager
from spinney.kube.reconciling import unless_gone
from spinney.runtime.tasks import BackgroundTasks

log = structlog.get_logger()

AT_ONCE: Final = 4
"""Starts that are written at the same time: each more would open a connection, and nobody waits for them."""


class ScheduleStart:
    """Writes when the scheduling of a PodGroup began, once. Mutable: it knows what is not seen to be written yet."""

    def __init__(self, manager: Manager, cache: WatchCache[coscheduling.PodGroup], background: BackgroundTasks) -> None:
        self._client = manager.client
        self._clock = manager.runtime.clock
        self._cache = cache
        self._background = background
        self._begun: set[str | None] = set()
        self._slots = asyncio.Semaphore(AT_ONCE)
        cache.subscribe(self._see)

    def began(self, gang: GangKey) -> None:
        """Note that a member of a group has a node, unless that was noted before."""
        key = Key(gang.namespace, gang.name)
        found = self._cache.get(key) if gang.source == coscheduling_source.SOURCE else None
        if found is None or found.status.schedule_start_time is not None or found.metadata.uid in self._begun:
            return
        self._begun.add(found.metadata.uid)
        self._background.begin(self._write(key, found, timestamp(self._clock.now())))

    def _see(self, change: Change[coscheduling.PodGroup]) -> None:
        if change.old is not None and (change.new is None or change.new.status.schedule_start_time is not None):
            self._begun.discard(change.old.metadata.uid)

    async def _write(self, key: Key, group: coscheduling.PodGroup, moment: str) -> None:
        patch = {"metadata": {"uid": group.metadata.uid}, "status": {"scheduleStartTime": moment}}
        try:
            async with self._slots:
                await unless_gone(
                    self._client.patch(coscheduling.POD_GROUP, key.name, patch, key.namespace, subresource="status")
                )
        except KubeError as error:
            self._begun.discard(group.metadata.uid)
            log.warning("schedule start not written", group=str(key), error=str(error))

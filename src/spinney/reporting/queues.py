"""The status of Queue objects: what each queue and those below it hold and ask for.

Written only where KAI's own queue controller does not run; that it does is told by the kinds that come with KAI's
operator. Changes are gathered for a while, and only what differs is written.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

import structlog

from spinney.api import kai
from spinney.api.resource import Resource
from spinney.api.struct import to_json
from spinney.cluster.state import ClusterState
from spinney.kube.cache import WatchCache
from spinney.kube.client import Client
from spinney.kube.discovery import served
from spinney.kube.errors import ApiError, Conflict, KubeError, NotFound
from spinney.kube.keys import Key

log = structlog.get_logger()

KAI_CONFIG: Final = Resource("kai.scheduler", "v1", "Config", "configs", namespaced=False)
"""A kind that comes with KAI's operator, and so with its queue controller."""
_GATHER: Final = 2.0
_AGAIN: Final = 30.0
"""Seconds after which a status that was refused is written again."""


class QueueStatuses:
    """Keeps the status of queues as ``current`` gives it. Mutable; has nothing to do until queues are followed."""

    def __init__(
        self, client: Client, cluster: ClusterState, current: Callable[[], Mapping[str, kai.QueueStatus]]
    ) -> None:
        self._client = client
        self._current = current
        self._queues: WatchCache[kai.Queue] | None = None
        self._changed = asyncio.Event()
        cluster.subscribe(lambda _: self.look_again())

    def look_again(self) -> None:
        """Compare soon what is written with what is so: something other than a pod may have changed it."""
        self._changed.set()

    def follow(self, queues: WatchCache[kai.Queue]) -> None:
        """Begin to write the status of queues, now or when the kind is installed later."""
        self._queues = queues
        queues.subscribe(lambda _: self.look_again())

    async def run(self) -> None:
        """Write what changes, until cancelled; a cluster that has KAI's controller is left to it."""
        left_to_kai: bool | None = None
        again: asyncio.TimerHandle | None = None
        while True:
            await self._changed.wait()
            await self._client.runtime.clock.sleep(_GATHER)
            self._changed.clear()
            if self._queues is None or left_to_kai:
                continue
            try:
                if left_to_kai is None:
                    left_to_kai = bool(await served(self._client, [KAI_CONFIG]))
                    log.info("queue status", left_to_kai=left_to_kai)
                if not left_to_kai:
                    await self._write(self._queues)
            except KubeError as error:
                log.warning("queue status not written, tried again later", error=str(error))
                if again is not None:  # each that is left would have all later attempts made once more
                    again.cancel()
                again = asyncio.get_running_loop().call_later(_AGAIN, self.look_again)

    async def _write(self, queues: WatchCache[kai.Queue]) -> None:
        """Write what differs; a queue that is refused keeps no other from it, and is raised once they were written."""
        refused: ApiError | None = None
        for name, status in self._current().items():
            found = queues.get(Key("", name))
            if found is None or _content(found.status) == _content(status):
                continue
            metadata = {"uid": found.metadata.uid, "resourceVersion": found.metadata.resource_version}
            try:
                await self._client.patch(
                    kai.QUEUE, name, {"metadata": metadata, "status": _content(status)}, subresource="status"
                )
            except (NotFound, Conflict):
                self._changed.set()
            except ApiError as error:
                refused = error
        if refused is not None:
            raise refused


def _content(status: kai.QueueStatus) -> Mapping[str, object]:
    """Return what is ours of a status; conditions are not."""
    found = to_json(status)
    wanted = ("childQueues", "allocated", "allocatedNonPreemptible", "requested")
    return {key: found.get(key) or ([] if key == "childQueues" else {}) for key in wanted}

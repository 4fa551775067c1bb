"""Pods whose Node was deleted: nobody runs them any more, so they fail and are taken away.

On a real cluster kube-controller-manager does this. A Node may come back under its name, so its pods are left alone for
a while first. Pods of nodes that never were stay as they are: a test may bind pods where nobody has made a Node.
"""

import asyncio
import re
from collections import deque
from typing import Final

from spinney.api.struct import JSON
from spinney.api.time import timestamp
from spinney.server.background.protection import has_ended
from spinney.server.operations.context import Context
from spinney.server.operations.deleting import DeleteOptions, delete_now
from spinney.server.store import ChangeNotKept, Collection, Record, StoreEvent

QUARANTINE_SECONDS: Final = 40.0
"""As long as Kubernetes waits for a Node to come back."""
_NODES, _PODS = "nodes", "pods"
_NODE_NAME: Final = re.compile(rb'"nodeName":"([^"]*)"')
_PAUSE: Final = 1.0  # seconds before what could not be kept is tried again


class OrphanedPods:
    """Takes away the pods of deleted Nodes; mutable, runs as one task."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._gone: set[str] = set()
        self._due: deque[tuple[float, str]] = deque()  # nodes to look at, in the order of their time
        self._waiter: asyncio.Future[None] | None = None
        context.store.listen(self._on_write)

    async def run(self) -> None:
        """Take away until cancelled."""
        clock = self._context.runtime.clock
        while True:
            if not self._due:
                self._waiter = asyncio.get_running_loop().create_future()
                await self._waiter
                continue
            due, node = self._due[0]
            wait = due - clock.monotonic()
            if wait > 0:
                await clock.sleep(wait)
                continue
            try:
                self._collect(node)
            except ChangeNotKept:  # the disk is full, which every write answers
                await clock.sleep(_PAUSE)
                continue
            self._due.popleft()

    def _on_write(self, collection: Collection, event: StoreEvent) -> None:
        record = event.record
        if collection.name == _NODES:
            if event.type == "DELETED":
                self._gone.add(record.key.name)
                self._look_later(record.key.name)
            else:
                self._gone.discard(record.key.name)
        elif collection.name == _PODS and self._gone and event.type != "DELETED":
            node = _node_of(record)
            if node in self._gone and all(node != waiting for _, waiting in self._due):
                self._look_later(node)  # a scheduler that did not know yet has bound it

    def _look_later(self, node: str) -> None:
        self._due.append((self._context.runtime.clock.monotonic() + QUARANTINE_SECONDS, node))
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _collect(self, node: str) -> None:
        pods = self._context.store.collection(_PODS)
        if node not in self._gone or pods is None:
            return
        for record in [each for each in pods.records() if _node_of(each) == node]:
            self._take_away(pods, record)

    def _take_away(self, pods: Collection, record: Record) -> None:
        if not has_ended(record):
            now = timestamp(self._context.runtime.clock.now())
            record = self._context.store.write(pods, record.key, _failed(record.decode(), now))
        kind = self._context.registry.storing(_PODS)
        assert kind is not None, "pods are built in"
        delete_now(self._context, kind, record, DeleteOptions(grace_seconds=0, uid=record.uid))


def _node_of(pod: Record) -> str:
    found = _NODE_NAME.search(pod.raw)
    return found.group(1).decode() if found is not None else ""


def _failed(pod: JSON, now: str) -> JSON:
    """Return a pod that has failed, with the condition that Kubernetes' pod garbage collector writes."""
    status = pod.setdefault("status", {})
    target = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "DeletionByPodGC",
        "message": "PodGC: node no longer exists",
        "lastTransitionTime": now,
    }
    others = [each for each in status.get("conditions") or () if each.get("type") != target["type"]]
    status |= {"phase": "Failed", "conditions": [*others, target]}
    return pod

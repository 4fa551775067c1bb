"""Pods whose Node was deleted: nobody runs them any more, so they fail and are taken away.

On a real cluster kube-controller-manager does this. A Node may come back under its name, so its pods are left alone for
a while first. Pods of nodes that never were stay as they are: a test may bind pods where nobody has made a Node.
"""

import re
from typing import Final

from spinney.api.struct import JSON
from spinney.api.time import timestamp
from spinney.server.background.deadlines import Deadlines
from spinney.server.background.protection import has_ended
from spinney.server.operations.context import Context
from spinney.server.operations.deleting import DeleteOptions, delete_now
from spinney.server.store import Collection, Record, StoreEvent

QUARANTINE_SECONDS: Final = 40.0
"""As long as Kubernetes waits for a Node to come back."""
_NODES, _PODS = "nodes", "pods"
_NODE_NAME: Final = re.compile(r'"nodeName":"([^"]*)"')


class OrphanedPods:
    """Takes away the pods of deleted Nodes; mutable, runs as one task."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._gone: set[str] = set()
        self._due: Deadlines[str] = Deadlines(context.runtime.clock, QUARANTINE_SECONDS)  # nodes to look at
        context.store.listen(self._on_write)

    async def run(self) -> None:
        """Take away until cancelled."""
        await self._due.run(self._collect)

    def _on_write(self, collection: Collection, event: StoreEvent) -> None:
        record = event.record
        if collection.name == _NODES:
            if event.type == "DELETED":
                self._gone.add(record.key.name)
                self._due.add(record.key.name)
            else:
                self._gone.discard(record.key.name)
        elif collection.name == _PODS and self._gone and event.type != "DELETED":
            for node in self._gone.intersection(nodes_named(record)):
                if node not in self._due and is_on(record, node):
                    self._due.add(node)  # a scheduler that did not know yet has bound it

    def _collect(self, node: str) -> None:
        store, kind = self._context.store, self._context.registry.built_in(_PODS)
        found = store.records(_PODS) if node in self._gone else ()
        for record in [each for each in found if is_on(each, node)]:
            if not has_ended(record):
                now = timestamp(self._context.runtime.clock.now())
                record = store.write(_PODS, record.key, _failed(record.decode(), now))  # noqa: PLW2901 - the same pod
            delete_now(self._context, kind, record, DeleteOptions(grace_seconds=0, uid=record.uid))


def nodes_named(pod: Record) -> list[str]:
    """Return the nodes that a pod may be bound to, told without reading it: a label may look so, too."""
    return _NODE_NAME.findall(pod.raw.decode())


def is_on(pod: Record, node: str) -> bool:
    """Tell whether a pod is bound to a node; only one that names it anywhere is read."""
    named = f'"nodeName":"{node}"'.encode() in pod.raw
    return named and (pod.decode().get("spec") or {}).get("nodeName") == node


def _failed(pod: JSON, now: str) -> JSON:
    """Return a pod that has failed, with the condition that Kubernetes' pod garbage collector writes."""
    pod.setdefault("status", {})["phase"] = "Failed"
    return with_disruption(pod, "DeletionByPodGC", "PodGC: node no longer exists", now)


def with_disruption(pod: JSON, reason: str, message: str, now: str) -> JSON:
    """Return a pod with the condition that says why the cluster ends it."""
    status = pod.setdefault("status", {})
    said = {"reason": reason, "message": message, "lastTransitionTime": now}
    target = {"type": "DisruptionTarget", "status": "True", **said}
    others = [each for each in status.get("conditions") or () if each.get("type") != target["type"]]
    status["conditions"] = [*others, target]
    return pod

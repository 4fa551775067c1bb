"""Pods that do not tolerate a ``NoExecute`` taint are deleted: at once, or when they have tolerated it for long enough.

On a real cluster kube-controller-manager does this. Like there disruption budgets are not asked, the pods say
``DisruptionTarget``, and who tolerates a taint for some seconds has them from when it was seen.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

from spinney.api.affinity import Taint, Toleration
from spinney.api.keys import Key
from spinney.api.struct import JSON, convert
from spinney.api.time import timestamp
from spinney.server.background.orphaned_pods import is_on, nodes_named, with_disruption
from spinney.server.background.worker import Worker
from spinney.server.operations.context import Context
from spinney.server.operations.deleting import DeleteOptions, delete_now
from spinney.server.store import Collection, Record, StoreEvent

_NO_EXECUTE: Final = "NoExecute"
_NODES, _PODS = "nodes", "pods"


class TaintEviction(Worker[tuple[str, Key]]):
    """Deletes the pods that taints of their nodes drive off; mutable, runs as one task."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._tainted: dict[str, Sequence[Taint]] = {}
        self._since: dict[Key, tuple[str, float]] = {}
        """The uid of each pod that tolerates its node for a while, and when that was seen first."""
        self._timers: dict[Key, asyncio.TimerHandle] = {}

    async def run(self) -> None:
        """Delete until cancelled; a server that starts again counts from its start."""
        for node in self._store.records(_NODES):
            if _may_drive_off(node):
                self._notes.note((_NODES, node.key))
        try:
            await super().run()
        finally:
            for timer in self._timers.values():
                timer.cancel()

    def _on_write(self, collection: Collection, event: StoreEvent) -> None:
        record = event.record
        if collection.name == _NODES:
            if record.key.name in self._tainted or _may_drive_off(record):
                self._notes.note((_NODES, record.key))
        elif collection.name == _PODS and (
            record.key in self._since or (self._tainted and not self._tainted.keys().isdisjoint(nodes_named(record)))
        ):
            self._notes.note((_PODS, record.key))

    def _work(self, item: tuple[str, Key]) -> None:
        collection, key = item
        record = self._store.get(collection, key)
        if collection == _NODES:
            self._look_at_node(key.name, _driving_off(record) if record is not None else ())
        elif record is not None:
            self._look_at(record)
        else:
            self._forget(key)

    def _look_at_node(self, name: str, taints: Sequence[Taint]) -> None:
        """Look at the pods of a node whose taints have changed."""
        if taints == self._tainted.get(name, ()):
            return
        if taints:
            self._tainted[name] = taints
        else:
            del self._tainted[name]
        for pod in [each for each in self._store.records(_PODS) if is_on(each, name)]:
            self._look_at(pod)

    def _look_at(self, record: Record) -> None:
        """Delete a pod whose time on its node is over, or come back to it then."""
        pod = record.decode()
        spec = pod.get("spec") or {}
        tolerations = [convert(Toleration, each) for each in spec.get("tolerations") or ()]
        seconds = _tolerated_seconds(tolerations, self._tainted.get(spec.get("nodeName", ""), ()))
        now = self._context.runtime.clock.monotonic()
        uid, since = self._since.get(record.key, (record.uid, now))
        self._forget(record.key)
        if seconds is None or record.deleting:
            return
        since = since if uid == record.uid else now
        left = since + seconds - now
        if left <= 0:
            self._delete(record, pod)
            return
        self._since[record.key] = (record.uid, since)
        again = asyncio.get_running_loop().call_later(left, self._notes.note, (_PODS, record.key))
        self._timers[record.key] = again

    def _delete(self, record: Record, pod: JSON) -> None:
        now = timestamp(self._context.runtime.clock.now())
        said = with_disruption(pod, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint", now)
        record = self._store.write(_PODS, record.key, said)
        delete_now(self._context, self._context.registry.built_in(_PODS), record, DeleteOptions(uid=record.uid))

    def _forget(self, key: Key) -> None:
        self._since.pop(key, None)
        if timer := self._timers.pop(key, None):
            timer.cancel()


def _may_drive_off(node: Record) -> bool:
    return f'"{_NO_EXECUTE}"'.encode() in node.raw


def _driving_off(node: Record) -> Sequence[Taint]:
    """Return the taints of a node that drive pods off."""
    found = (node.decode().get("spec") or {}).get("taints") or ()
    return [convert(Taint, each) for each in found if each.get("effect") == _NO_EXECUTE]


def _tolerated_seconds(tolerations: Sequence[Toleration], taints: Iterable[Taint]) -> float | None:
    """Return how long a pod with these tolerations may stay; ``None`` is for ever. The shortest of them counts."""
    limits: list[float] = []
    for taint in taints:
        matching = [each for each in tolerations if each.tolerates(taint)]
        if not matching:
            return 0.0
        limits += [max(0.0, each.toleration_seconds) for each in matching if each.toleration_seconds is not None]
    return min(limits, default=None)

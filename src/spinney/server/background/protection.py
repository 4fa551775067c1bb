"""Objects that are in use are not deleted under their users: pod groups and volume claims of pods, bound volumes.

Admission marks each with a finalizer. When such an object is being deleted, the finalizer goes as
soon as nobody uses it any more: at once, or when the last pod that does has ended.
"""

from collections.abc import Iterator

from spinney.api.keys import Key
from spinney.api.struct import JSON
from spinney.server.admission.protection import FINALIZERS, GROUPS, VOLUMES
from spinney.server.background.worker import Worker
from spinney.server.operations.context import Context
from spinney.server.operations.deleting import let_go, store_released
from spinney.server.store import Collection, Record, StoreEvent

_PODS = "pods"
_ENDED = (b'"phase":"Succeeded"', b'"phase":"Failed"')


class InUseProtection(Worker[tuple[str, Key]]):
    """Releases protected objects that nobody uses."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._waiting: set[tuple[str, Key]] = set()

    def _on_write(self, collection: Collection, event: StoreEvent) -> None:
        record = event.record
        if collection.name in FINALIZERS:
            place = (collection.name, record.key)
            if event.type == "DELETED":
                self._waiting.discard(place)
            elif record.deleting:
                self._waiting.add(place)
                self._notes.note(place)
        elif collection.name == _PODS and self._waiting and (event.type == "DELETED" or has_ended(record)):
            for place in sorted(self._waiting):
                if place[1].namespace == record.key.namespace:
                    self._notes.note(place)

    def _work(self, item: tuple[str, Key]) -> None:
        name, key = item
        record = self._store.get(name, key)
        if record is None or not record.deleting:
            return
        obj = record.decode()
        if FINALIZERS[name] not in (obj["metadata"].get("finalizers") or ()) or self._is_in_use(name, key, obj):
            return
        let_go(obj, FINALIZERS[name])
        store_released(self._context, self._context.registry.built_in(name), key, obj)

    def _is_in_use(self, name: str, key: Key, obj: JSON) -> bool:
        if name == VOLUMES:
            return bool((obj.get("status") or {}).get("phase") == "Bound")
        uses = _groups_of if name == GROUPS else _claims_of
        return any(
            key.name in uses(pod.decode().get("spec") or {})
            for pod in self._store.records(_PODS, key.namespace)
            if not has_ended(pod) and f'"{key.name}"'.encode() in pod.raw
        )


def has_ended(pod: Record) -> bool:
    """Tell whether a pod has succeeded or failed; only one that says so anywhere is read."""
    if not any(phase in pod.raw for phase in _ENDED):
        return False
    return (pod.decode().get("status") or {}).get("phase") in ("Succeeded", "Failed")


def _groups_of(spec: JSON) -> Iterator[str]:
    group = spec.get("schedulingGroup")
    if isinstance(group, dict):
        yield str(group.get("podGroupName", ""))


def _claims_of(spec: JSON) -> Iterator[str]:
    for volume in spec.get("volumes") or ():
        claim = volume.get("persistentVolumeClaim")
        if isinstance(claim, dict):
            yield str(claim.get("claimName", ""))

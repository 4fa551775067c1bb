"""Ending what contains other objects: namespaces, and custom kinds whose definition is deleted.

The container stays, marked as being deleted, until its last object is gone; then its finalizer is removed.
"""

from collections.abc import Iterator

from spinney.api.keys import Key
from spinney.server.background.notes import KeyQueue
from spinney.server.background.working import work_off
from spinney.server.crd.definitions import CLEANUP, COLLECTION
from spinney.server.kinds import Kind
from spinney.server.operations.context import Context
from spinney.server.operations.deleting import DeleteOptions, delete_now, finish_if_released
from spinney.server.store import Collection, Record, StoreEvent

_NAMESPACES = "namespaces"


class Endings:
    """Empties and removes containers that are being deleted; mutable, runs as one task."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._notes: KeyQueue[tuple[str, str]] = KeyQueue()
        self._ending_namespaces: set[str] = set()
        self._ending_kinds: set[str] = set()  # names of collections
        context.store.listen(self._on_write)

    async def run(self) -> None:
        """End containers until cancelled."""
        await work_off(self._notes, self._end, self._context.runtime.clock)

    def _end(self, what: tuple[str, str]) -> None:
        container, name = what
        if container == _NAMESPACES:
            self._end_namespace(name)
        else:
            self._end_kind(name)

    def _on_write(self, collection: Collection, event: StoreEvent) -> None:
        key = event.record.key
        if collection.name == _NAMESPACES:
            self._follow(self._ending_namespaces, _NAMESPACES, key.name, event)
        elif collection.name == COLLECTION:
            self._follow(self._ending_kinds, COLLECTION, key.name, event)
        elif event.type == "DELETED":
            if key.namespace in self._ending_namespaces:
                self._notes.note((_NAMESPACES, key.namespace))
            if collection.name in self._ending_kinds:
                self._notes.note((COLLECTION, collection.name))

    def _follow(self, ending: set[str], container: str, name: str, event: StoreEvent) -> None:
        if event.type == "DELETED":
            ending.discard(name)
        elif event.record.deleting:
            ending.add(name)
            self._notes.note((container, name))

    def _end_namespace(self, name: str) -> None:
        store = self._context.store
        namespaces = store.collection(_NAMESPACES)
        record = namespaces.get(Key("", name)) if namespaces else None
        if namespaces is None or record is None or not record.deleting:
            return
        if self._empty(self._contents(name)):
            obj = record.decode()
            obj["spec"] = {}
            self._finish(namespaces, record, obj)

    def _end_kind(self, name: str) -> None:
        definitions = self._context.store.collection(COLLECTION)
        record = definitions.get(Key("", name)) if definitions else None
        if definitions is None or record is None or not record.deleting:
            return
        instances = self._context.store.collection(name)
        kind = self._context.registry.storing(name)
        if kind is None or instances is None or self._empty((kind, each) for each in instances.records()):
            obj = record.decode()
            finalizers = [each for each in obj["metadata"].get("finalizers") or () if each != CLEANUP]
            obj["metadata"]["finalizers"] = finalizers
            self._finish(definitions, record, obj)

    def _contents(self, namespace: str) -> Iterator[tuple[Kind, Record]]:
        for collection in self._context.store.collections():
            kind = self._context.registry.storing(collection.name)
            if kind is not None and kind.resource.namespaced:
                for record in collection.records(namespace):
                    yield kind, record

    def _empty(self, contents: Iterator[tuple[Kind, Record]]) -> bool:
        """Delete everything that is not being deleted yet; return whether nothing is left."""
        left = False
        for kind, record in list(contents):
            if record.deleting:
                left = True
                continue
            deleted = delete_now(self._context, kind, record, DeleteOptions(propagation="Background"))
            left = left or not deleted.gone
        return not left

    def _finish(self, collection: Collection, record: Record, obj: dict[str, object]) -> None:
        kind = self._context.registry.storing(collection.name)
        assert kind is not None, f"{collection.name} is built in"
        if finish_if_released(self._context, kind, record.key, obj) is None and obj != record.decode():
            self._context.store.write(collection, record.key, obj)

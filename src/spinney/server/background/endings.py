"""Ending what contains other objects: namespaces, and custom kinds whose definition is deleted.

The container stays, marked as being deleted, until its last object is gone; then its finalizer is removed.
"""

from collections.abc import Iterator

from spinney.api.keys import Key
from spinney.server.background.worker import Worker
from spinney.server.crd.definitions import CLEANUP, COLLECTION
from spinney.server.kinds import Kind
from spinney.server.operations.context import Context
from spinney.server.operations.deleting import DeleteOptions, delete_now, finish_if_released, let_go
from spinney.server.store import Collection, Record, StoreEvent

_NAMESPACES = "namespaces"


class Endings(Worker[tuple[str, str]]):
    """Empties and removes containers that are being deleted."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._ending: dict[str, set[str]] = {_NAMESPACES: set(), COLLECTION: set()}  # names of what ends

    def _work(self, item: tuple[str, str]) -> None:
        container, name = item
        record = self._store.get(container, Key("", name))
        if record is None or not record.deleting:
            return
        obj = record.decode()
        if container == _NAMESPACES:
            contents = self._contents(name)
            obj["spec"] = {}
        else:
            kind = self._context.registry.storing(name)
            contents = ((kind, each) for each in self._store.records(name)) if kind else iter(())
            let_go(obj, CLEANUP)
        if self._empty(contents):
            ending = self._context.registry.built_in(container)
            if finish_if_released(self._context, ending, record.key, obj) is None and obj != record.decode():
                self._store.write(container, record.key, obj)

    def _on_write(self, collection: Collection, event: StoreEvent) -> None:
        key = event.record.key
        ending = self._ending.get(collection.name)
        if ending is not None:
            if event.type == "DELETED":
                ending.discard(key.name)
            elif event.record.deleting:
                ending.add(key.name)
                self._notes.note((collection.name, key.name))
        elif event.type == "DELETED":
            if key.namespace in self._ending[_NAMESPACES]:
                self._notes.note((_NAMESPACES, key.namespace))
            if collection.name in self._ending[COLLECTION]:
                self._notes.note((COLLECTION, collection.name))

    def _contents(self, namespace: str) -> Iterator[tuple[Kind, Record]]:
        for collection in self._store.collections():
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

"""What every namespace has is brought back when it was deleted, or when the certificate authority is another."""

from spinney.api.keys import Key
from spinney.server.background.notes import KeyQueue
from spinney.server.background.working import work_off
from spinney.server.operations.bootstrap import IN_NAMESPACES, bootstrap_namespace
from spinney.server.operations.context import Context
from spinney.server.store import ChangeNotKept, Collection, StoreEvent


class NamespaceDefaults:
    """Brings back what was taken out of a living namespace; mutable, runs as one task."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._notes: KeyQueue[str] = KeyQueue()
        context.store.listen(self._on_write)

    async def run(self) -> None:
        """Restore until cancelled."""
        await work_off(self._notes, self._restore, self._context.runtime.clock)

    def _restore(self, namespace: str) -> None:
        if self._is_alive(namespace):
            bootstrap_namespace(self._context, namespace)

    def restore_all(self) -> None:
        """Put into every living namespace what it lacks, or has in an old form; without room that is done later."""
        namespaces = self._context.store.collection("namespaces")
        for record in list(namespaces.records()) if namespaces else ():
            if record.deleting:
                continue
            try:
                bootstrap_namespace(self._context, record.key.name)
            except ChangeNotKept:
                self._notes.note(record.key.name)

    def _is_alive(self, namespace: str) -> bool:
        namespaces = self._context.store.collection("namespaces")
        found = namespaces.get(Key("", namespace)) if namespaces else None
        return found is not None and not found.deleting

    def _on_write(self, collection: Collection, event: StoreEvent) -> None:
        key = event.record.key
        if event.type == "DELETED" and IN_NAMESPACES.get(collection.name) == key.name:
            self._notes.note(key.namespace)

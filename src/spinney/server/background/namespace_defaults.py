"""What every namespace has is brought back when it was deleted, or when the certificate authority is another."""

from spinney.api.keys import Key
from spinney.server.background.worker import Worker
from spinney.server.operations.bootstrap import IN_NAMESPACES, bootstrap_namespace
from spinney.server.store import ChangeNotKept, Collection, StoreEvent


class NamespaceDefaults(Worker[str]):
    """Brings back what was taken out of a living namespace."""

    def _work(self, item: str) -> None:
        namespace = self._store.get("namespaces", Key("", item))
        if namespace is not None and not namespace.deleting:
            bootstrap_namespace(self._context, item)

    def restore_all(self) -> None:
        """Put into every living namespace what it lacks, or has in an old form; without room that is done later."""
        for record in list(self._store.records("namespaces")):
            if record.deleting:
                continue
            try:
                bootstrap_namespace(self._context, record.key.name)
            except ChangeNotKept:
                self._notes.note(record.key.name)

    def _on_write(self, collection: Collection, event: StoreEvent) -> None:
        key = event.record.key
        if event.type == "DELETED" and IN_NAMESPACES.get(collection.name) == key.name:
            self._notes.note(key.namespace)

"""Keeping the registry in step with the stored definitions."""

from spinney.api.keys import Key
from spinney.server.crd.definitions import COLLECTION, kinds_of
from spinney.server.kinds import Kind, KindRegistry
from spinney.server.store import Collection, Store, StoreEvent


class DefinedKinds:
    """Serves the kinds of every stored definition; listens to the store."""

    def __init__(self, store: Store, registry: KindRegistry) -> None:
        self._store = store
        self._registry = registry
        self._installed: dict[Key, list[Kind]] = {}
        self._specs: dict[Key, object] = {}
        store.listen(self._on_write)

    def _on_write(self, collection: Collection, event: StoreEvent) -> None:
        if collection.name != COLLECTION:
            return
        key = event.record.key
        if event.type == "DELETED":
            self._uninstall(key)
            return
        obj = event.record.decode()
        if self._specs.get(key) == obj["spec"]:
            return
        kinds = kinds_of(obj)
        self._uninstall(key)
        for kind in kinds:
            self._store.open(kind.storage, kind.field_values)
            self._registry.add(kind)
        self._installed[key] = kinds
        self._specs[key] = obj["spec"]

    def _uninstall(self, key: Key) -> None:
        for kind in self._installed.pop(key, ()):
            self._registry.remove(kind)
        self._specs.pop(key, None)

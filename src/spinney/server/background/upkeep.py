"""What the cluster keeps right by itself: roles that are the sum of others, what every namespace has, and quotas."""

from spinney.api.keys import Key
from spinney.api.rbac import CLUSTER_ROLE
from spinney.api.selectors import LabelSelector
from spinney.api.struct import JSON, convert
from spinney.runtime import Clock
from spinney.server.background.worker import KeyQueue, Worker
from spinney.server.operations.bootstrap import IN_NAMESPACES, bootstrap_namespace
from spinney.server.operations.context import Context
from spinney.server.quota.amounts import with_usage
from spinney.server.quota.book import QUOTAS, Book
from spinney.server.store import ChangeNotKept, Collection, Store, StoreEvent

_COLLECTION = str(CLUSTER_ROLE)


class Aggregation(Worker[str]):
    """Writes the rules of cluster roles that are the sum of those that their selectors find."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._aggregated: set[str] = set()

    def settle(self) -> None:
        """Aggregate what is noted now, at once: what the cluster begins with is complete."""
        while (name := self._notes.next()) is not None:
            self._work(name)

    def _on_write(self, collection: Collection, event: StoreEvent) -> None:
        if collection.name != _COLLECTION:
            return
        name = event.record.key.name
        if event.type == "DELETED":
            self._aggregated.discard(name)
        elif b'"aggregationRule"' in event.record.raw:
            self._aggregated.add(name)
        for each in sorted(self._aggregated):
            self._notes.note(each)

    def _work(self, item: str) -> None:
        record = self._store.get(_COLLECTION, Key("", item))
        if record is None or record.deleting:
            return
        obj = record.decode()
        selectors = [
            convert(LabelSelector, each)
            for each in (obj.get("aggregationRule") or {}).get("clusterRoleSelectors") or ()
        ]
        if not selectors:
            return
        rules: list[JSON] = []
        for selector in selectors:
            for each in self._store.records(_COLLECTION):
                if each.key.name != item and selector.matches(each.labels):
                    rules += [rule for rule in each.decode().get("rules") or () if rule not in rules]
        if rules != (obj.get("rules") or []):
            obj["rules"] = rules
            self._store.write(_COLLECTION, record.key, obj)


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


class QuotaKeeping:
    """Writes what is used of each quota; mutable, runs as one task. Owns the book, which admission reads."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._notes: KeyQueue[Key] = KeyQueue()
        self.book = Book(store, self._notes.note)

    async def run(self) -> None:
        """Keep until cancelled."""
        await self._notes.work_off(self._settle, self._clock)

    def _settle(self, key: Key) -> None:
        account, found = self.book.account(key), self._store.get(QUOTAS, key)
        if account is None or found is None or found.deleting:
            return
        updated = with_usage(found.decode(), account.used)
        if updated is not None:
            self._store.write(QUOTAS, key, updated)

"""Garbage collection: what belongs to an owner goes with it.

The collector listens to the store and takes notes; nothing is scanned. It looks at an object when one of its owners is
gone, when it names an owner that does not exist, and when its own deletion waits for (or lets go of) its dependents.
"""

from spinney.api.keys import Key
from spinney.api.struct import JSON
from spinney.server.background.worker import Worker
from spinney.server.kinds import Kind
from spinney.server.operations.deleting import (
    FOREGROUND,
    ORPHAN,
    DeleteOptions,
    Propagation,
    delete_now,
    let_go,
    store_released,
)
from spinney.server.store import Collection, Record, StoreEvent

Place = tuple[str, Key]


class GarbageCollector(Worker[Place]):
    """Deletes dependents of owners that are gone."""

    def _work(self, item: Place) -> None:
        name, key = item
        record, kind = self._store.get(name, key), self._context.registry.storing(name)
        if record is not None and kind is not None:
            self._look_at(kind, record)

    def _on_write(self, collection: Collection, event: StoreEvent) -> None:
        record = event.record
        gone, before = event.type == "DELETED", event.previous.owners if event.previous else ()
        for owner in before:
            if gone or owner not in record.owners:
                found = self._store.by_uid(owner)
                if found is not None and found[1].deleting:
                    self._notes.note((found[0].name, found[1].key))
        if gone:
            for dependents, dependent in self._store.dependents(record.uid):
                self._notes.note((dependents.name, dependent.key))
        elif record.deleting or (record.owners and not self._is_settled(event)):
            self._notes.note((collection.name, record.key))

    def _is_settled(self, event: StoreEvent) -> bool:
        """Tell whether there is nothing to look at: the owners are the same as before, or all alive and well."""
        record = event.record
        if event.previous is not None and event.previous.owners == record.owners:
            return True
        owners = [self._store.by_uid(uid) for uid in record.owners]
        reachable = ("", record.key.namespace)
        return all(owner and not owner[1].deleting and owner[1].key.namespace in reachable for owner in owners)

    def _look_at(self, kind: Kind, record: Record) -> None:
        if record.deleting:
            self._advance_deletion(kind, record)
            return
        obj = record.decode()
        references = obj["metadata"].get("ownerReferences") or []
        present = [reference for reference in references if self._exists(reference, record)]
        staying = [reference for reference in present if not self._waits_for_dependents(reference)]
        if staying:
            if len(staying) < len(references):
                obj["metadata"]["ownerReferences"] = staying
                self._store.write(kind.storage, record.key, obj)
        elif references:
            policy = self._policy(obj)
            if present:
                dependents = self._store.dependents(record.uid)
                if any(_holds(dependent, FOREGROUND) for _, dependent in dependents):
                    record = self._unblocking(kind, record)
                policy = "Foreground" if dependents else "Background"
            delete_now(self._context, kind, record, DeleteOptions(propagation=policy, uid=record.uid))

    def _waits_for_dependents(self, reference: JSON) -> bool:
        """Tell whether an owner is being deleted once its dependents are gone."""
        found = self._store.by_uid(reference.get("uid", ""))
        return found is not None and _holds(found[1], FOREGROUND)

    def _advance_deletion(self, kind: Kind, record: Record) -> None:
        dependents = self._store.dependents(record.uid)
        if _holds(record, ORPHAN):
            for place, dependent in dependents:
                self._disown(place.name, dependent, record.uid)
            self._release(kind, record, ORPHAN)
        elif _holds(record, FOREGROUND):
            for place, dependent in dependents:
                if not dependent.deleting:
                    self._notes.note((place.name, dependent.key))
            if not any(each.uid != record.uid and _blocks(each, record.uid) for _, each in dependents):
                self._release(kind, record, FOREGROUND)

    def _release(self, kind: Kind, record: Record, finalizer: str) -> None:
        obj = record.decode()
        let_go(obj, finalizer)
        store_released(self._context, kind, record.key, obj)

    def _unblocking(self, kind: Kind, record: Record) -> Record:
        """Let owners go before their dependent: where these own each other, each would wait for the other."""
        obj = record.decode()
        for reference in obj["metadata"]["ownerReferences"]:
            reference["blockOwnerDeletion"] = False
            owner = self._store.by_uid(reference["uid"])
            if owner is not None:
                self._notes.note((owner[0].name, owner[1].key))
        return self._store.write(kind.storage, record.key, obj)

    def _disown(self, collection: str, dependent: Record, uid: str) -> None:
        obj = dependent.decode()
        metadata = obj["metadata"]
        metadata["ownerReferences"] = [each for each in metadata.get("ownerReferences") or () if each.get("uid") != uid]
        if not metadata["ownerReferences"]:
            del metadata["ownerReferences"]
        self._store.write(collection, dependent.key, obj)

    def _exists(self, reference: JSON, dependent: Record) -> bool:
        """Tell whether an owner exists, or cannot be looked up: then its dependents are left alone.

        So it is of a kind that is not served, and of a namespaced owner of an object that is in no namespace.
        """
        own, found = dependent.key.namespace, self._store.by_uid(reference.get("uid", ""))
        if found is not None:
            return not own or found[1].key.namespace in {"", own}
        known = self._context.registry.find_kind(reference.get("apiVersion", ""), reference.get("kind", ""))
        return known is None or (not own and known.resource.namespaced)

    @staticmethod
    def _policy(obj: JSON) -> Propagation:
        finalizers = obj["metadata"].get("finalizers") or ()
        return "Orphan" if ORPHAN in finalizers else "Foreground" if FOREGROUND in finalizers else "Background"


def _holds(record: Record, finalizer: str) -> bool:
    return record.deleting and finalizer in (record.decode()["metadata"].get("finalizers") or ())


def _blocks(dependent: Record, uid: str) -> bool:
    references = dependent.decode()["metadata"].get("ownerReferences") or ()
    return any(each.get("uid") == uid and each.get("blockOwnerDeletion") for each in references)

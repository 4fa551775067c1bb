"""The store: collections, one revision counter over all of them, and the index of owners.

Writes are synchronous and atomic: there is no await between looking at the current record and replacing it, so no
lock is needed. Every write draws the next revision, appends to the collection's history and tells the listeners
(garbage collection, namespaces, CRDs), which only take notes. With a journal, a write is in the file before any client
can see it; so whatever was acknowledged is there again after the process was killed.
"""

from collections.abc import Callable, Iterable, Iterator

import structlog

from spinney.api.keys import Key
from spinney.api.struct import JSON
from spinney.server.store.collection import Collection
from spinney.server.store.history import StoreEvent
from spinney.server.store.journal import Entry, Journal
from spinney.server.store.record import Record, record

log = structlog.get_logger()

FIRST_REVISION = 100  # well above 1, so that nobody mistakes a revision for a generation or a count

Listener = Callable[[Collection, StoreEvent], None]
FieldValues = Callable[[JSON], tuple[str, ...]]


class Store:
    """Every object of the cluster; mutable, and the only place where it changes."""

    def __init__(self, *, history: int, journal: Journal | None = None) -> None:
        self._history = history
        self._journal = journal
        self._revision = FIRST_REVISION
        self._collections: dict[str, Collection] = {}
        self._forms: dict[str, tuple[str, FieldValues]] = {}
        """How each collection is stored: the apiVersion of its objects, and the values of their selectable fields."""
        self._dependents: dict[str, dict[tuple[str, Key], None]] = {}
        self._uids: dict[str, tuple[str, Key]] = {}
        self._listeners: list[Listener] = []

    @property
    def revision(self) -> int:
        """The revision of the newest write."""
        return self._revision

    def listen(self, listener: Listener) -> None:
        """Call ``listener`` after every write, in the writer's turn: it must be quick and must not write."""
        self._listeners.append(listener)

    def open(self, name: str, api_version: str, field_values: FieldValues) -> Collection:
        """Return the collection ``name``, made on first sight, with what its objects are stored as from now on."""
        collection = self._collections.get(name)
        if collection is None:
            collection = Collection(name, history=self._history, revision=self._revision)
            self._collections[name] = collection
        self._forms[name] = api_version, field_values
        return collection

    def read_again(self, name: str) -> None:
        """Have the objects of a collection be what they are stored as now; no write, so nobody is told."""
        collection = self._collections[name]
        collection.read_again(
            lambda each: self._record(name, each.key, each.revision, each.decode()), revision=self._revision
        )

    def collections(self) -> list[Collection]:
        """Return every collection, in the order they were opened."""
        return list(self._collections.values())

    def collection(self, name: str) -> Collection | None:
        """Return the collection ``name`` if it was opened."""
        return self._collections.get(name)

    def get(self, name: str, key: Key) -> Record | None:
        """Return the object at ``key`` of the collection ``name``, if there is one."""
        collection = self._collections.get(name)
        return collection.get(key) if collection else None

    def records(self, name: str, namespace: str | None = None) -> Iterator[Record]:
        """Iterate over the objects of the collection ``name``, as :meth:`Collection.records` does."""
        collection = self._collections.get(name)
        return collection.records(namespace) if collection else iter(())

    def dependents(self, uid: str) -> list[tuple[Collection, Record]]:
        """Return the objects that name ``uid`` as an owner, oldest reference first."""
        found = []
        for name, key in self._dependents.get(uid, ()):
            collection = self._collections[name]
            dependent = collection.get(key)
            if dependent is not None:
                found.append((collection, dependent))
        return found

    def by_uid(self, uid: str) -> tuple[Collection, Record] | None:
        """Return the living object with this uid."""
        place = self._uids.get(uid)
        if place is None:
            return None
        collection = self._collections[place[0]]
        found = collection.get(place[1])
        return None if found is None else (collection, found)

    def restore(self, entries: Iterable[Entry], revision: int) -> None:
        """Bring back journalled objects, as if they had just been added; watches cannot reach behind ``revision``."""
        self._revision = revision
        for entry in entries:
            collection = self._collections.get(entry.collection)
            if collection is None:
                log.warning("objects of a kind that is not served are left out", collection=entry.collection)
                continue
            restored = self._record(collection.name, entry.key, entry.revision, entry.decode())
            self._show(collection, StoreEvent("ADDED", restored, None))
        for collection in self._collections.values():
            collection.history.compact(revision)

    def write(self, name: str, key: Key, obj: JSON) -> Record:
        """Create or replace an object of the collection ``name``; ``obj`` is taken over."""
        collection = self._collections[name]
        previous = collection.get(key)
        self._revision += 1
        written = record(key, self._revision, obj, self._forms[name][1](obj))
        self._commit(collection, StoreEvent("MODIFIED" if previous else "ADDED", written, previous))
        return written

    def remove(self, name: str, key: Key, last: JSON) -> Record:
        """Delete an object of the collection ``name``; ``last`` is its final state, which watchers are sent."""
        collection = self._collections[name]
        previous = collection.get(key)
        assert previous is not None, f"{name} {key} is not there to be removed"
        self._revision += 1
        written = record(key, self._revision, last, self._forms[name][1](last))
        self._commit(collection, StoreEvent("DELETED", written, previous))
        return written

    def _record(self, name: str, key: Key, revision: int, obj: JSON) -> Record:
        """Return the record of an object that may have been stored in another version than is stored now."""
        obj["apiVersion"], field_values = self._forms[name]
        return record(key, revision, obj, field_values(obj))

    def _commit(self, collection: Collection, event: StoreEvent) -> None:
        if self._journal is not None:
            self._journal.append(collection.name, event)
        self._show(collection, event)
        if self._journal is not None:
            self._journal.shorten(self)

    def _show(self, collection: Collection, event: StoreEvent) -> None:
        previous, current = event.previous, event.record
        place = (collection.name, current.key)
        gone = event.type == "DELETED"
        if previous is None:
            self._uids[current.uid] = place
        elif gone:
            self._uids.pop(previous.uid, None)
        before = previous.owners if previous else ()
        after = () if gone else current.owners
        if before != after:
            for uid in before:
                if uid not in after:
                    dependents = self._dependents.get(uid)
                    if dependents is not None:
                        dependents.pop(place, None)
                        if not dependents:
                            del self._dependents[uid]
            for uid in after:
                self._dependents.setdefault(uid, {})[place] = None
        collection.put(event)
        for listener in self._listeners:
            listener(collection, event)

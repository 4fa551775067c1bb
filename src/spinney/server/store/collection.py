"""All objects of one stored kind: look-up, ordered pages, and the state at an earlier revision.

Records are kept per namespace; the sorted order of names is computed when it is asked for and kept until a name comes
or goes. The state at an earlier revision is today's state with the history undone, so that the pages of one list are
consistent with each other without any snapshot being taken.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator

from spinney.api.keys import Key
from spinney.server.store.history import StoreEvent, WatchHistory
from spinney.server.store.record import Record


class Collection:
    """The records of one kind; mutable, written only by the store."""

    def __init__(self, name: str, *, history: int, revision: int) -> None:
        self.name = name
        self.history = WatchHistory(history, revision)
        self._namespaces: dict[str, dict[str, Record]] = {}
        self._sorted: dict[str, list[str]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def get(self, key: Key) -> Record | None:
        """Return the record at ``key``."""
        namespace = self._namespaces.get(key.namespace)
        return None if namespace is None else namespace.get(key.name)

    def records(self, namespace: str | None = None, after: Key | None = None) -> Iterator[Record]:
        """Iterate in key order over the records behind ``after``; ``None`` means all namespaces.

        The iterator must be used up before the collection changes.
        """
        for each in self._names_of_namespaces(namespace, after):
            objects = self._namespaces[each]
            names = self._names(each)
            start = bisect_right(names, after.name) if after is not None and after.namespace == each else 0
            for index in range(start, len(names)):
                yield objects[names[index]]

    def count(self, namespace: str | None = None, after: Key | None = None) -> int:
        """Return how many records :meth:`records` would give."""
        total = 0
        for each in self._names_of_namespaces(namespace, after):
            names = self._names(each)
            skipped = bisect_right(names, after.name) if after is not None and after.namespace == each else 0
            total += len(names) - skipped
        return total

    def changed_since(self, revision: int) -> bool:
        """Tell whether anything changed after ``revision``; raise :class:`TooOld` if that is forgotten."""
        return bool(self.history.newest_first(revision))

    def records_at(self, revision: int, namespace: str | None = None, after: Key | None = None) -> Iterator[Record]:
        """Iterate over the records as they were at ``revision``; raise :class:`TooOld` if that is forgotten."""
        undone: dict[Key, Record | None] = {}
        for event in self.history.newest_first(revision):
            if namespace is None or event.record.key.namespace == namespace:
                undone[event.record.key] = event.previous
        state = {record.key: record for record in self.records(namespace, after)}
        for key, previous in undone.items():
            if previous is None:
                state.pop(key, None)
            elif after is None or key > after:
                state[key] = previous
        for key in sorted(state):
            yield state[key]

    def _names_of_namespaces(self, namespace: str | None, after: Key | None) -> list[str]:
        if namespace is not None:
            return [namespace] if namespace in self._namespaces else []
        return sorted(each for each in self._namespaces if after is None or each >= after.namespace)

    def _names(self, namespace: str) -> list[str]:
        if namespace not in self._sorted:
            self._sorted[namespace] = sorted(self._namespaces[namespace])
        return self._sorted[namespace]

    def read_again(self, read: Callable[[Record], Record], revision: int) -> None:
        """Replace each record by what it says when it is read otherwise; watches from before have to list again."""
        for objects in self._namespaces.values():
            objects.update({name: read(record) for name, record in objects.items()})
        self.history.restart(revision)

    def put(self, event: StoreEvent) -> None:
        """Make a change visible. Only the store calls this, with a revision newer than all before."""
        record = event.record
        namespace, name = record.key
        if event.type == "DELETED":
            objects = self._namespaces[namespace]
            del objects[name]
            self._count -= 1
            self._sorted.pop(namespace, None)
            if not objects:
                del self._namespaces[namespace]
        else:
            objects = self._namespaces.setdefault(namespace, {})
            if name not in objects:
                self._count += 1
                self._sorted.pop(namespace, None)
            objects[name] = record
        self.history.append(event)

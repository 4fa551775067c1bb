"""All objects of one stored kind: look-up, ordered pages, and the state at an earlier revision.

Records are kept per namespace; the sorted order of names is computed when it is asked for and kept until a name comes
or goes. The state at an earlier revision is today's state with the history undone, so that the pages of one list are
consistent with each other without any snapshot being taken.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from spinney.server.store.history import Event, History
from spinney.server.store.record import Key, Record

Fields = Callable[[dict[str, object]], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Page:
    """Part of a list, in key order; ``last`` is where the next page goes on, if there is one."""

    records: list[Record]
    last: Key | None
    remaining: int


class Collection:
    """The records of one kind; mutable, written only by the store."""

    def __init__(self, name: str, *, history: int, revision: int) -> None:
        self.name = name
        self.history = History(history, revision)
        self._namespaces: dict[str, dict[str, Record]] = {}
        self._sorted: dict[str, list[str]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def get(self, key: Key) -> Record | None:
        """Return the record at ``key``."""
        namespace = self._namespaces.get(key.namespace)
        return None if namespace is None else namespace.get(key.name)

    def records(self, namespace: str | None = None) -> Iterator[Record]:
        """Iterate over records in key order; ``None`` means all namespaces. Changes meanwhile are not seen."""
        names = sorted(self._namespaces) if namespace is None else [namespace]
        for each in names:
            objects = self._namespaces.get(each)
            if objects:
                if each not in self._sorted:
                    self._sorted[each] = sorted(objects)
                yield from [objects[name] for name in self._sorted[each]]

    def records_at(self, revision: int, namespace: str | None = None) -> Iterator[Record]:
        """Iterate over the records as they were at ``revision``; raise :class:`TooOld` if that is forgotten."""
        undone: dict[Key, Record | None] = {}
        for event in self.history.newest_first(revision):
            if namespace is None or event.record.key.namespace == namespace:
                undone[event.record.key] = event.previous
        if not undone:
            yield from self.records(namespace)
            return
        state = {record.key: record for record in self.records(namespace)}
        for key, previous in undone.items():
            if previous is None:
                state.pop(key, None)
            else:
                state[key] = previous
        for key in sorted(state):
            yield state[key]

    def put(self, event: Event) -> None:
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

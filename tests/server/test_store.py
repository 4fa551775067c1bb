"""The store against a model: what is listed, what is watched and what earlier revisions held."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from spinney.api.keys import Key
from spinney.api.struct import JSON
from spinney.server.store import Record, Store, StoreEvent, TooOld

_HISTORY = 12
_NAMES = st.sampled_from(["a", "b", "c", "d"])
_NAMESPACES = st.sampled_from(["x", "y"])


def _contents(records: Any) -> dict[Key, int]:
    return {record.key: record.decode()["value"] for record in records}


class StoreAgainstModel(RuleBasedStateMachine):
    """Random writes; the model is a dict, and a copy of it for every revision."""

    def __init__(self) -> None:
        super().__init__()
        self.store = Store(history=_HISTORY)
        self.collection = self.store.open("things", "v1", lambda _: ())
        self.model: dict[Key, int] = {}
        self.states: dict[int, dict[Key, int]] = {self.store.revision: {}}
        self.events: list[StoreEvent] = []
        self.start = self.store.revision
        self.store.listen(lambda _, event: self.events.append(event))
        self.counter = 0

    def _object(self) -> JSON:
        self.counter += 1
        return {"metadata": {"uid": f"u{self.counter}"}, "value": self.counter}

    @rule(namespace=_NAMESPACES, name=_NAMES)
    def write(self, namespace: str, name: str) -> None:
        before = self.store.revision
        key = Key(namespace, name)
        obj = self._object()
        if current := self.collection.get(key):
            obj["metadata"]["uid"] = current.uid
        self.store.write(self.collection.name, key, obj)
        self.model[key] = self.counter
        assert self.store.revision == before + 1
        self.states[self.store.revision] = dict(self.model)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.model)))
        current = self.collection.get(key)
        assert current is not None
        self.store.remove(self.collection.name, key, current.decode())
        del self.model[key]
        self.states[self.store.revision] = dict(self.model)

    @rule(data=st.data())
    def look_back(self, data: st.DataObject) -> None:
        revision = data.draw(st.sampled_from(sorted(self.states)))
        try:
            found = _contents(self.collection.records_at(revision))
        except TooOld:
            assert revision < self.collection.history.compacted
            return
        assert found == self.states[revision]

    @rule(namespace=st.none() | _NAMESPACES, after=st.none() | st.builds(Key, _NAMESPACES, _NAMES), data=st.data())
    def page(self, namespace: str | None, after: Key | None, data: st.DataObject) -> None:
        def wanted(state: dict[Key, int]) -> list[Key]:
            return [
                key for key in sorted(state) if namespace in {None, key.namespace} and (after is None or key > after)
            ]

        if namespace is not None and after is not None and after.namespace != namespace:
            return
        found = [record.key for record in self.collection.records(namespace, after)]
        assert found == wanted(self.model)
        assert self.collection.count(namespace, after) == len(found)
        revision = data.draw(st.sampled_from(sorted(self.states)))
        if revision >= self.collection.history.compacted:
            then = [record.key for record in self.collection.records_at(revision, namespace, after)]
            assert then == wanted(self.states[revision])
            assert self.collection.changed_since(revision) or then == found

    @rule(data=st.data())
    def replay(self, data: st.DataObject) -> None:
        revision = data.draw(st.sampled_from(sorted(self.states)))
        history = self.collection.history
        try:
            cursor = history.cursor_after(revision)
        except TooOld:
            assert revision < history.compacted
            return
        state = dict(self.states[revision])
        while events := history.read(cursor, 3):
            cursor += len(events)
            for event in events:
                _replay(state, event)
        assert state == self.model

    @invariant()
    def lists_the_model_in_order(self) -> None:
        records = list(self.collection.records())
        assert _contents(records) == self.model
        assert [record.key for record in records] == sorted(self.model)
        assert len(self.collection) == len(self.model)

    @invariant()
    def revisions_only_grow(self) -> None:
        revisions = [event.revision for event in self.events]
        assert revisions == sorted(set(revisions))
        assert all(record.decode()["metadata"]["resourceVersion"] == str(record.revision) for record in self._records())

    def _records(self) -> list[Record]:
        return list(self.collection.records())


def _replay(state: dict[Key, int], event: StoreEvent) -> None:
    if event.type == "DELETED":
        del state[event.record.key]
    else:
        assert (event.type == "MODIFIED") is (event.record.key in state)
        state[event.record.key] = event.record.decode()["value"]


TestStoreAgainstModel = StoreAgainstModel.TestCase
TestStoreAgainstModel.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)

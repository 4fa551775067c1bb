"""Cluster roles that are the sum of others: their rules follow the roles that their selectors find."""

from spinney.api.keys import Key
from spinney.api.rbac import CLUSTER_ROLE
from spinney.api.selectors import LabelSelector
from spinney.api.struct import JSON, convert
from spinney.server.background.worker import Worker
from spinney.server.operations.context import Context
from spinney.server.store import Collection, StoreEvent

_COLLECTION = str(CLUSTER_ROLE)


class Aggregation(Worker[str]):
    """Writes the rules of aggregated cluster roles."""

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

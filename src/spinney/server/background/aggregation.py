"""Cluster roles that are the sum of others: their rules follow the roles that their selectors find."""

from typing import Any

from spinney.api.keys import Key
from spinney.api.rbac import CLUSTER_ROLE
from spinney.api.selectors import LabelSelector
from spinney.api.struct import JSON, convert
from spinney.server.background.notes import KeyQueue
from spinney.server.background.working import work_off
from spinney.server.operations.context import Context
from spinney.server.store import Collection, StoreEvent

_COLLECTION = str(CLUSTER_ROLE)


class Aggregation:
    """Writes the rules of aggregated cluster roles; mutable, runs as one task."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._notes: KeyQueue[str] = KeyQueue()
        self._aggregated: set[str] = set()
        context.store.listen(self._on_write)

    async def run(self) -> None:
        """Aggregate until cancelled."""
        await work_off(self._notes, self._sum, self._context.runtime.clock)

    def settle(self) -> None:
        """Aggregate what is noted now, at once: what the cluster begins with is complete."""
        while (name := self._notes.next()) is not None:
            self._sum(name)

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

    def _sum(self, name: str) -> None:
        roles = self._context.store.collection(_COLLECTION)
        record = roles.get(Key("", name)) if roles else None
        if roles is None or record is None or record.deleting:
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
            for each in roles.records():
                if each.key.name != name and selector.matches(each.labels):
                    rules += [rule for rule in each.decode().get("rules") or () if rule not in rules]
        if rules != _rules(obj):
            obj["rules"] = rules
            self._context.store.write(roles, record.key, obj)


def _rules(role: JSON) -> list[Any]:
    return role.get("rules") or []

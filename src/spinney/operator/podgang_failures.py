"""What a PodCliqueSet says about the backend of its gangs: the condition BackendReady, there while something is wrong.

The set's own controller writes everything else in that status; this condition has a field manager of its own, and is
left out on a CRD whose conditions belong to their last writer. There the events have to do.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from typing import Final

from spinney.api.conditions import find_condition, is_false, set_condition
from spinney.api.grove import POD_CLIQUE_SET, PodCliqueSet
from spinney.api.meta import Condition
from spinney.api.podgang import BACKEND_READY, PodGang
from spinney.api.struct import to_json
from spinney.kube.client import Client
from spinney.kube.errors import NotFound
from spinney.kube.keys import Key
from spinney.operator.condition_lists import are_keyed

FIELD_MANAGER: Final = "spinney-operator-backend"
MOST_NAMED: Final = 3


def backend_condition(gangs: Iterable[PodGang]) -> Condition | None:
    """Return what is wrong with the backend of some gangs; ``None`` when nothing is."""
    failing = sorted(
        (gang.metadata.name, condition.reason, condition.message)
        for gang in gangs
        if is_false(gang.status.conditions, BACKEND_READY)
        and (condition := find_condition(gang.status.conditions, BACKEND_READY)) is not None
    )
    if not failing:
        return None
    lines = [f"PodGang {name}: {message}" for name, _, message in failing[:MOST_NAMED]]
    if len(failing) > MOST_NAMED:
        lines.append(f"and {len(failing) - MOST_NAMED} more")
    return Condition(type=BACKEND_READY, status="False", reason=failing[0][1], message="\n".join(lines))


class SetReports:
    """Writes the condition where it differs from what was last written. Mutable: remembers that, and a lock per set."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._told: dict[Key, Condition | None] = {}
        self._locks: dict[Key, asyncio.Lock] = {}
        self._keyed: bool | None = None

    async def tell(self, pcs: PodCliqueSet, gangs: Callable[[], Iterable[PodGang]]) -> None:
        """Make the condition of a set agree with its gangs, which are looked at when their turn has come."""
        key = Key(pcs.metadata.namespace or "", pcs.metadata.name)
        async with self._locks.setdefault(key, asyncio.Lock()):
            wanted = backend_condition(gangs())
            told = self._told.get(key, find_condition(pcs.status.conditions, BACKEND_READY))
            if _said(wanted) == _said(told) or not await self._is_keyed():
                return
            conditions = () if wanted is None else set_condition((told,) if told else (), wanted, self._now())
            body = {
                "metadata": {"name": key.name, "namespace": key.namespace, "uid": pcs.metadata.uid},
                "status": {"conditions": [to_json(each) for each in conditions]} if conditions else {},
            }
            with suppress(NotFound):
                await self._client.apply(POD_CLIQUE_SET, body, field_manager=FIELD_MANAGER, subresource="status")
            self._told[key] = conditions[0] if conditions else None

    def forget(self, key: Key) -> None:
        """Drop what is remembered of a set that is gone."""
        self._told.pop(key, None)
        self._locks.pop(key, None)

    async def _is_keyed(self) -> bool:
        if self._keyed is None:
            self._keyed = await are_keyed(self._client, POD_CLIQUE_SET)
        return self._keyed

    def _now(self) -> datetime:
        return self._client.runtime.clock.now()


def _said(condition: Condition | None) -> tuple[str, str, str] | None:
    return None if condition is None else (condition.status, condition.reason, condition.message)

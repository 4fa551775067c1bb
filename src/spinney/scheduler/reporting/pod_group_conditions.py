"""What the scheduler writes on KAI's PodGroups: why one waits, and when it last started and lost pods.

The condition is KAI's own (``UnschedulableOnNodePool``, one per node pool, counted by ``transitionID``); it is taken
away once the job is placed. The moments are annotations, which the rules of min-runtime and preemption delay read, also
after a restart. The kind is somebody else's, so a write is a merge patch that names the version it was made for.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

import msgspec

from spinney.api import kai
from spinney.api.struct import JSON, to_json
from spinney.api.time import timestamp
from spinney.gangs.sources import kai as kai_source
from spinney.gangs.sources.context import LAST_EVICTION_ANNOTATION, LAST_START_ANNOTATION
from spinney.gangs.tree import GangKey
from spinney.kube.cache import WatchCache
from spinney.kube.client import Client
from spinney.kube.controller import Controller, Requeue
from spinney.kube.errors import Conflict, NotFound
from spinney.kube.events import EventRecorder, reference
from spinney.kube.keys import Key
from spinney.kube.manager import Manager
from spinney.reporting.pods import SCHEDULER_ERROR
from spinney.scheduler.framework.results import Unschedulable

UNSCHEDULABLE_ON_POOL: Final = "UnschedulableOnNodePool"
DEFAULT_POOL: Final = "default"


class PodGroupConditions:
    """Keeps the conditions of KAI's PodGroups true. Mutable: it remembers what is to be written."""

    def __init__(self, client: Client, events: EventRecorder, *, node_pool: str | None) -> None:
        self._client = client
        self._events = events
        self._pool = node_pool or DEFAULT_POOL
        self._refusals: dict[Key, Unschedulable] = {}
        self._marks: dict[Key, dict[str, str]] = {}
        self._groups: WatchCache[kai.PodGroup] | None = None
        self._controller: Controller | None = None

    def controller(self, manager: Manager) -> Controller:
        """Return the controller that writes; it has nothing to do until groups are followed."""
        self._controller = Controller(
            "pod-group-conditions", self._reconcile, runtime=manager.runtime, metrics=manager.metrics
        )
        return self._controller

    def follow(self, groups: WatchCache[kai.PodGroup]) -> None:
        """Begin to write, now or when the kind is installed later."""
        self._groups = groups

    def refused(self, unschedulable: Iterable[Unschedulable]) -> None:
        """Note what the last cycle could not place; of what it no longer refuses the condition goes."""
        before = self._refusals
        self._refusals = {key: each for each in unschedulable if (key := _key(each.gang)) is not None}
        self._look_at(before.keys() | self._refusals.keys())

    def started(self, gangs: Iterable[GangKey], moment: datetime) -> None:
        """Note that gangs got their first pods."""
        self._mark(gangs, LAST_START_ANNOTATION, moment)

    def evicted(self, gangs: Iterable[GangKey], moment: datetime) -> None:
        """Note that gangs lost pods to others."""
        self._mark(gangs, LAST_EVICTION_ANNOTATION, moment)

    def _mark(self, gangs: Iterable[GangKey], annotation: str, moment: datetime) -> None:
        for key in dict.fromkeys(filter(None, map(_key, gangs))):
            self._marks.setdefault(key, {})[annotation] = timestamp(moment)
            self._look_at([key])

    def _look_at(self, keys: Iterable[Key]) -> None:
        if self._controller is not None and self._groups is not None:
            for key in keys:
                self._controller.enqueue(key)

    async def _reconcile(self, key: Key) -> Requeue | None:
        group = self._groups.get(key) if self._groups is not None else None
        if group is None:
            self._marks.pop(key, None)
            return None
        marks = self._marks.pop(key, {})
        refusal = self._refusals.get(key)
        status = scheduling_status(group, refusal, pool=self._pool, now=self._client.runtime.clock.now())
        try:
            if marks:
                group = await self._patch(group, {"metadata": {"annotations": marks}})
            if status is not None:
                await self._patch(group, {"status": status}, subresource="status")
        except NotFound:
            return None
        except Conflict:
            self._marks[key] = {**marks, **self._marks.get(key, {})}
            return Requeue()
        if status is not None and refusal is not None:
            self._events.event(reference(kai.POD_GROUP, group), "Warning", refusal.reason, refusal.event)
        return None

    async def _patch(self, group: kai.PodGroup, patch: JSON, *, subresource: str | None = None) -> kai.PodGroup:
        metadata = group.metadata
        precondition = {"uid": metadata.uid, "resourceVersion": metadata.resource_version}
        body = {**patch, "metadata": {**patch.get("metadata", {}), **precondition}}
        return await self._client.patch(
            kai.POD_GROUP, metadata.name, body, metadata.namespace, subresource=subresource, type=kai.PodGroup
        )


def scheduling_status(
    group: kai.PodGroup, refusal: Unschedulable | None, *, pool: str, now: datetime
) -> Mapping[str, object] | None:
    """Return the conditions a group ought to have, or None if it has them."""
    present = group.status.scheduling_conditions
    mine = next((each for each in present if each.node_pool == pool and each.type == UNSCHEDULABLE_ON_POOL), None)
    others = [each for each in present if each is not mine]
    if refusal is None:
        return None if mine is None else {"schedulingConditions": to_json(others)}
    reasons = tuple(kai.UnschedulableReason(reason=each.reason, message=refusal.said(each)) for each in refusal.errors)
    if mine is not None and (mine.message, mine.reasons) == (refusal.message, reasons):
        return None
    last = max((int(each.transition_id) for each in present if each.transition_id.isdigit()), default=-1)
    condition = kai.SchedulingCondition(
        type=UNSCHEDULABLE_ON_POOL,
        node_pool=pool,
        reason=SCHEDULER_ERROR if refusal.reason == SCHEDULER_ERROR else reasons[0].reason if reasons else "",
        message=refusal.message,
        reasons=reasons,
        status="True",
        transition_id=str(last + 1),
        last_transition_time=now,
    )
    return {"schedulingConditions": msgspec.to_builtins([*map(to_json, others), to_json(condition)])}


def _key(gang: GangKey) -> Key | None:
    return Key(gang.namespace, gang.name) if gang.source == kai_source.SOURCE else None

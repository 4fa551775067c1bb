"""What the scheduler writes on KAI's PodGroups: why one waits, and when it last started and lost pods.

The condition is KAI's own (``UnschedulableOnNodePool``, one per node pool, counted by ``transitionID``); it is taken
away once the job is placed. The moments are annotations, which the rules of min-runtime and preemption delay read, also
after a restart. The kind is KAI's, so a write is a merge patch that names the version it was made for.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

import msgspec

from spinney.api import kai
from spinney.api.labels import KAI_LAST_EVICTION, KAI_LAST_START
from spinney.api.struct import JSON, to_json
from spinney.api.time import timestamp
from spinney.gangs.sources import kai as source
from spinney.gangs.tree import GangKey
from spinney.kube.client import Client
from spinney.kube.errors import Conflict
from spinney.kube.keys import Key, key_of
from spinney.reporting.controller import ObjectEvent, StatusKind
from spinney.reporting.pods import SCHEDULER_ERROR
from spinney.reporting.verdicts import GangStanding, GangVerdict
from spinney.runtime import Runtime

UNSCHEDULABLE_ON_POOL: Final = "UnschedulableOnNodePool"
DEFAULT_POOL: Final = "default"


class KaiGroupStatus(StatusKind[kai.PodGroup]):
    """Conditions and annotations of KAI's PodGroups. Mutable: it remembers the moments that are to be written."""

    name = "pod-group-conditions"
    resource = kai.POD_GROUP
    sources = frozenset({source.SOURCE})

    def __init__(self, *, node_pool: str | None) -> None:
        self._pool = node_pool or DEFAULT_POOL
        self._marks: dict[Key, dict[str, str]] = {}

    def started(self, gangs: Iterable[GangKey], moment: datetime) -> None:
        """Note that gangs got their first pods."""
        self._mark(gangs, KAI_LAST_START, moment)

    def evicted(self, gangs: Iterable[GangKey], moment: datetime) -> None:
        """Note that gangs lost pods to others."""
        self._mark(gangs, KAI_LAST_EVICTION, moment)

    def _mark(self, gangs: Iterable[GangKey], annotation: str, moment: datetime) -> None:
        for gang in gangs:
            if gang.source in self.sources:
                self._marks.setdefault(Key(gang.namespace, gang.name), {})[annotation] = timestamp(moment)

    def gang_of(self, found: kai.PodGroup) -> GangKey:
        return GangKey.of(source.SOURCE, found.metadata)

    def patch(self, found: kai.PodGroup, standing: GangStanding, runtime: Runtime) -> JSON | None:
        """Return what is to be written: annotations, status, or both."""
        patch: JSON = {}
        if marks := self._marks.get(key_of(found)):
            patch["metadata"] = {"annotations": dict(marks)}
        status = scheduling_status(found, standing.refused, pool=self._pool, now=runtime.clock.now())
        if status is not None:
            patch["status"] = status
        return patch

    def event_with(self, found: kai.PodGroup, standing: GangStanding, patch: JSON) -> ObjectEvent | None:
        """Tell why a group waits, when its condition does."""
        refused = standing.refused
        return ObjectEvent("Warning", refused.reason, refused.event) if refused and "status" in patch else None

    def gone(self, key: Key) -> None:
        """Forget the moments of a group."""
        self._marks.pop(key, None)

    async def write(self, client: Client, found: kai.PodGroup, patch: JSON) -> None:
        """Write the annotations, then the status, each for the version at hand."""
        key = key_of(found)
        marks = self._marks.pop(key, {})
        try:
            if "metadata" in patch:
                found = await self._patch(client, found, patch["metadata"], {})
            if "status" in patch:
                await self._patch(client, found, {}, {"status": patch["status"]}, subresource="status")
        except Conflict:
            self._marks[key] = {**marks, **self._marks.get(key, {})}
            raise

    async def _patch(
        self, client: Client, found: kai.PodGroup, metadata: JSON, status: JSON, *, subresource: str | None = None
    ) -> kai.PodGroup:
        version = {"uid": found.metadata.uid, "resourceVersion": found.metadata.resource_version}
        body = {"metadata": {**metadata, **version}, **status}
        name, namespace = found.metadata.name, found.metadata.namespace
        return await client.patch(self.resource, name, body, namespace, subresource=subresource, type=kai.PodGroup)


def scheduling_status(
    group: kai.PodGroup, refusal: GangVerdict | None, *, pool: str, now: datetime
) -> Mapping[str, object] | None:
    """Return the conditions a group ought to have, or None if it has them."""
    present = group.status.scheduling_conditions
    mine = next((each for each in present if each.node_pool == pool and each.type == UNSCHEDULABLE_ON_POOL), None)
    others = [each for each in present if each is not mine]
    if refusal is None:
        return None if mine is None else {"schedulingConditions": to_json(others)}
    reasons = tuple(kai.UnschedulableReason(reason=reason, message=message) for reason, message in refusal.causes)
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

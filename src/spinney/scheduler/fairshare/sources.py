"""Where queues come from: KAI's Queue objects in a cluster.

One that says nothing about a resource has quota, weight and limit 0, so nothing may run; that is KAI's meaning and is
kept.
"""

from datetime import timedelta

from spinney.api import kai
from spinney.api.durations import parse_duration
from spinney.scheduler.fairshare.amounts import GPU, UNLIMITED, Amounts
from spinney.scheduler.fairshare.queues import DEFAULT_PRIORITY, QueueInfo, Weights

_MEGABYTE = 10**6
_MOST = 1e30
"""Quotas and limits beyond that many units count as this: no cluster has it, and sums of them stay numbers."""


def queue_of(found: kai.Queue) -> QueueInfo:
    """Return the queue of a Queue object, with KAI's defaults and units."""
    metadata, spec = found.metadata, found.spec
    resources = spec.resources or kai.QueueResources()
    cpu, memory, gpu = resources.cpu, resources.memory, resources.gpu
    created = metadata.creation_timestamp
    return QueueInfo(
        name=metadata.name,
        parent=spec.parent_queue or None,
        priority=DEFAULT_PRIORITY if spec.priority is None else spec.priority,
        quota=Amounts(_scaled(cpu.quota, 1), _scaled(memory.quota, _MEGABYTE), _scaled(gpu.quota, GPU)),
        limit=Amounts(_scaled(cpu.limit, 1), _scaled(memory.limit, _MEGABYTE), _scaled(gpu.limit, GPU)),
        weight=Weights(*(float(each.over_quota_weight or 0) for each in (cpu, memory, gpu))),
        created=created.timestamp() if created is not None else 0.0,
        uid=metadata.uid or "",
        preempt_min_runtime=_duration(spec.preempt_min_runtime),
        reclaim_min_runtime=_duration(spec.reclaim_min_runtime),
    )


def _scaled(amount: float | None, unit: int) -> int:
    if amount is None:
        return 0
    return UNLIMITED if amount < 0 else round(min(amount, _MOST) * unit)


def _duration(text: str | None) -> timedelta | None:
    return parse_duration(text) if text else None

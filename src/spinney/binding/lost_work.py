"""The work that a gang loses when it goes: its GPUs times the time since it started, or since its last checkpoint."""

from collections.abc import Iterable
from datetime import datetime

from spinney.binding.repair import bound_at
from spinney.cluster.devices import DEVICE
from spinney.cluster.pods import PodRecord
from spinney.gangs.book import GangMembers
from spinney.gangs.checkpoints import EvictionRequest, is_ready, saved_until


def lost_seconds(started: datetime | None, checkpoint: datetime | None, now: datetime) -> float:
    """Return how long the work has lasted that is not saved; nothing where it is not known when it began."""
    if started is None:
        return 0.0
    return max(0.0, (now - max(started, checkpoint or started)).total_seconds())


def lost_gpu_seconds(
    members: GangMembers, records: Iterable[PodRecord], *, now: datetime, asked: EvictionRequest | None
) -> float:
    """Return what pods of a gang lose; a gang that says it is ready has saved its work since it was asked, at least."""
    checkpoint = saved_until(members, now)
    if asked is not None and asked.waits and is_ready(members, asked):
        checkpoint = max(asked.asked, checkpoint or asked.asked)
    return sum(
        record.request.gpu_parts(0) / DEVICE * lost_seconds(bound_at(record.pod), checkpoint, now) for record in records
    )

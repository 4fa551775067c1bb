"""Where queues come from: KAI's Queue objects in a cluster, or our own configuration.

The two have different defaults. A Queue object that says nothing about a resource has quota, weight and limit 0, so
nothing may run; that is KAI's meaning and is kept. In our own configuration silence means no guarantee, an equal part
of the surplus, and no limit.
"""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Annotated, Any

import msgspec

from spinney.api import kai
from spinney.api.durations import parse_duration
from spinney.api.quantity import milli, value
from spinney.scheduler.fairshare.amounts import GPU, UNLIMITED, Amounts
from spinney.scheduler.fairshare.queues import DEFAULT_PRIORITY, Queue, Weights

_MEGABYTE = 10**6

Bound = str | int | float
"""An amount as a quantity, or ``unlimited``."""


class InvalidQueues(ValueError):
    """Queues of a configuration that make no sense."""


class ShareConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a queue is entitled to of one resource."""

    quota: Bound = 0
    limit: Bound = "unlimited"
    weight: Annotated[float, msgspec.Meta(ge=0)] = 1.0


class QueueConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A queue as it is written in our configuration; CPU in cores, memory in bytes, GPU in devices."""

    name: str
    parent: str | None = None
    priority: int = DEFAULT_PRIORITY
    gpu: ShareConfig = ShareConfig()
    cpu: ShareConfig = ShareConfig()
    memory: ShareConfig = ShareConfig()
    preempt_min_runtime: str | None = None
    reclaim_min_runtime: str | None = None


def queues_from_config(raw: Any) -> tuple[Queue, ...]:
    """Decode the list of queues of a configuration, in the order of age; raises :class:`InvalidQueues`."""
    try:
        configured = msgspec.convert(raw, list[QueueConfig])
    except msgspec.ValidationError as error:
        raise InvalidQueues(f"queues: {error}") from error
    names = [queue.name for queue in configured]
    for position, queue in enumerate(configured):
        if queue.name in names[:position]:
            raise InvalidQueues(f"queues[{position}].name: {queue.name!r} is the name of an earlier queue")
        if queue.parent is not None and queue.parent not in names:
            raise InvalidQueues(f"queues[{position}].parent: no queue is named {queue.parent!r}")
    return tuple(_configured(queue, position) for position, queue in enumerate(configured))


def queues_from_objects(objects: Iterable[kai.Queue], *, full_hierarchy: bool = True) -> tuple[Queue, ...]:
    """Return the queues of a cluster's Queue objects, with KAI's defaults and units.

    Without ``full_hierarchy`` only leaves take part, side by side below one unlimited queue named ``default``.
    """
    queues = tuple(_from_object(each) for each in objects)
    return queues if full_hierarchy else flattened(queues)


def flattened(queues: Sequence[Queue]) -> tuple[Queue, ...]:
    """Return the leaves side by side below one unlimited queue named ``default``."""
    parents = {queue.parent for queue in queues}
    leaves = [queue for queue in queues if queue.name not in parents]
    everything = Amounts(UNLIMITED, UNLIMITED, UNLIMITED)
    top = Queue(name="default", quota=everything, limit=everything)
    return (top, *(msgspec.structs.replace(leaf, parent="default") for leaf in leaves if leaf.name != "default"))


def _from_object(found: kai.Queue) -> Queue:
    metadata, spec = found.metadata, found.spec
    resources = spec.resources or kai.QueueResources()
    cpu, memory, gpu = resources.cpu, resources.memory, resources.gpu
    created = metadata.creation_timestamp
    return Queue(
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


def _configured(queue: QueueConfig, position: int) -> Queue:
    def bounds(field: str) -> Amounts:
        cpu, memory, gpu = (getattr(share, field) for share in (queue.cpu, queue.memory, queue.gpu))
        return Amounts(
            UNLIMITED if cpu == "unlimited" else milli(cpu),
            UNLIMITED if memory == "unlimited" else value(memory),
            UNLIMITED if gpu == "unlimited" else milli(gpu) * GPU // 1000,
        )

    try:
        return Queue(
            name=queue.name,
            parent=queue.parent,
            priority=queue.priority,
            quota=bounds("quota"),
            limit=bounds("limit"),
            weight=Weights(queue.cpu.weight, queue.memory.weight, queue.gpu.weight),
            created=float(position),
            preempt_min_runtime=_duration(queue.preempt_min_runtime),
            reclaim_min_runtime=_duration(queue.reclaim_min_runtime),
        )
    except ValueError as error:
        raise InvalidQueues(f"queues[{position}] ({queue.name}): {error}") from error


def _scaled(amount: float | None, unit: int) -> int:
    if amount is None:
        return 0
    return UNLIMITED if amount < 0 else round(amount * unit)


def _duration(text: str | None) -> timedelta | None:
    return parse_duration(text) if text else None

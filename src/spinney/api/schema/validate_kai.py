"""Validation of KAI's queues and topologies."""

from typing import Final

from spinney.api.field_error import FieldError, FieldPath, duplicate, invalid, required
from spinney.api.kai import UNLIMITED, Queue, QueueResource, Topology
from spinney.api.labels import HOSTNAME
from spinney.api.names import qualified_name_faults
from spinney.api.schema.validate_metadata import validate_metadata
from spinney.api.schema.validate_pod_groups import validate_duration

MAX_LEVELS: Final = 16
_SPEC: Final = FieldPath("spec")


def validate_queue(queue: Queue) -> list[FieldError]:
    """Return every fault of a queue."""
    spec = queue.spec
    errors = [*validate_metadata(queue.metadata)]
    if spec.parent_queue is not None and spec.parent_queue == queue.metadata.name:
        errors.append(invalid(_SPEC.child("parentQueue"), spec.parent_queue, "a queue cannot be its own parent"))
    errors += validate_duration(spec.preempt_min_runtime, _SPEC.child("preemptMinRuntime"))
    errors += validate_duration(spec.reclaim_min_runtime, _SPEC.child("reclaimMinRuntime"))
    where = _SPEC.child("resources")
    if spec.resources is None:
        return [*errors, required(where, "say what the queue may use of gpu, cpu and memory")]
    for name, resource in (("gpu", spec.resources.gpu), ("cpu", spec.resources.cpu), ("memory", spec.resources.memory)):
        errors += _resource(resource, where.child(name))
    return errors


def validate_kai_topology(topology: Topology) -> list[FieldError]:
    """Return every fault of a topology."""
    path, levels = _SPEC.child("levels"), topology.spec.levels
    errors = [*validate_metadata(topology.metadata)]
    if not levels:
        return [*errors, required(path, "at least one level is needed")]
    if len(levels) > MAX_LEVELS:
        errors.append(invalid(path, len(levels), f"must have at most {MAX_LEVELS} levels"))
    labels = {level.node_label for level in levels}
    seen: set[str] = set()
    aliases: set[str] = set()
    for i, level in enumerate(levels):
        here = path.index(i)
        where, label = here.child("nodeLabel"), level.node_label
        errors += [invalid(where, label, fault) for fault in qualified_name_faults(label)]
        if label in seen:
            errors.append(duplicate(where, label))
        if label == HOSTNAME and i != len(levels) - 1:
            errors.append(invalid(where, label, "may only be the last level"))
        seen.add(label)
        if level.alias is not None:
            if level.alias in aliases:
                errors.append(duplicate(here.child("alias"), level.alias))
            elif level.alias in labels:
                errors.append(invalid(here.child("alias"), level.alias, "must differ from every nodeLabel"))
            aliases.add(level.alias)
    return errors


def _resource(resource: QueueResource, path: FieldPath) -> list[FieldError]:
    return [
        invalid(path.child(name), amount, f"must not be negative, except {UNLIMITED} for unlimited")
        for name, amount in (("quota", resource.quota), ("limit", resource.limit))
        if amount is not None and amount < 0 and amount != UNLIMITED
    ]

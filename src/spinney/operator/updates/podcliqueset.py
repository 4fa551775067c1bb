"""Updating a PodCliqueSet: one replica at a time.

Next is, among the replicas that do not follow the present templates yet, one that has nothing scheduled (nothing is
lost), then one that is breached already, then the lowest index. A template that changes again half-way starts over.
"""

from datetime import datetime

import msgspec

from spinney.api.conditions import is_true
from spinney.api.grove import ON_DELETE, PodCliqueSet
from spinney.api.grove_status import PodCliqueSetUpdateProgress, ReplicaUpdate
from spinney.operator.desired import names
from spinney.operator.desired.hashes import TemplateHashes
from spinney.operator.desired.layout import Layout
from spinney.operator.status.podclique import MIN_AVAILABLE_BREACHED
from spinney.operator.status.podcliqueset import ObservedSet, is_replica_converged


def is_on_delete(pcs: PodCliqueSet) -> bool:
    """Tell whether pods are left alone until a user deletes them."""
    return pcs.spec.update_strategy is not None and pcs.spec.update_strategy.type == ON_DELETE


def set_update(
    layout: Layout, observed: ObservedSet, hashes: TemplateHashes, now: datetime
) -> PodCliqueSetUpdateProgress | None:
    """Return the progress of a set's update after the next step; ``None`` if there never was one."""
    status = layout.pcs.status
    progress = status.update_progress
    if status.current_generation_hash is None:
        return progress
    if status.current_generation_hash != hashes.generation:
        ended = now if is_on_delete(layout.pcs) else None
        progress = PodCliqueSetUpdateProgress(update_started_at=now, update_ended_at=ended)
    if progress is None or progress.update_ended_at is not None:
        return progress
    return _advanced(layout, observed, hashes, progress, now)


def is_selected(pcs: PodCliqueSet, i: int) -> bool:
    """Tell whether the parts of a replica may be updated now: it is its turn, or the set waits for nobody's turn."""
    progress = pcs.status.update_progress
    if progress is None or progress.update_ended_at is not None:
        return True
    return any(each.replica_index == i and each.update_ended_at is None for each in progress.currently_updating)


def _advanced(
    layout: Layout,
    observed: ObservedSet,
    hashes: TemplateHashes,
    progress: PodCliqueSetUpdateProgress,
    now: datetime,
) -> PodCliqueSetUpdateProgress:
    pending = [i for i in range(layout.replicas) if not is_replica_converged(layout, observed, hashes, i)]
    current = next((each for each in progress.currently_updating if each.replica_index in pending), None)
    if current is not None:
        return progress
    if not pending:
        return msgspec.structs.replace(progress, update_ended_at=now, currently_updating=())
    chosen = min(pending, key=lambda i: (*_reluctance(layout, observed, i), i))
    return msgspec.structs.replace(
        progress, currently_updating=(ReplicaUpdate(replica_index=chosen, update_started_at=now),)
    )


def _reluctance(layout: Layout, observed: ObservedSet, i: int) -> tuple[bool, bool]:
    """Return how much is lost by updating a replica: false before true."""
    cliques = [observed.cliques[place.name] for place in layout.standalone(i) if place.name in observed.cliques]
    found = [names.scaling_group(layout.name, i, group) for group in layout.group_configs]
    groups = [observed.groups[name] for name in found if name in observed.groups]
    scheduled = any(c.status.scheduled_replicas for c in cliques) or any(g.status.scheduled_replicas for g in groups)
    conditions = [each.status.conditions for each in cliques] + [each.status.conditions for each in groups]
    breached = any(is_true(each, MIN_AVAILABLE_BREACHED) for each in conditions)
    return scheduled, not breached

"""Carrying a plan out, gang by gang, within disruption budgets.

The nodes that are to be free are cordoned first, so that evicted pods go elsewhere, and opened again at the
end. The next gang follows when the one before has what it needs again (:mod:`spinney.binding.moving`) and none of its
owners' pods waits for a node. If a gang does not come back, nothing more is moved.
"""

from collections.abc import Iterable
from functools import partial
from typing import Final

from spinney.api.core import NODE
from spinney.binding.moving import GangMover
from spinney.cluster.pods import PodKey, PodRecord
from spinney.cluster.statuses import PodStatus
from spinney.sim.defrag.plan import DefragPlan, GangMove

PATIENCE: Final = 300.0
"""Seconds for one gang to find another place."""
_WAITING: Final = frozenset({PodStatus.PENDING, PodStatus.GATED})


async def carry_out(plan: DefragPlan, mover: GangMover) -> None:
    """Move what the plan moves; raises :class:`~spinney.binding.moving.MoveStopped`."""
    client, table = mover.client, mover.cluster.table
    rows = {name: table.find(name) for name in plan.nodes}
    cordoned = [name for name, row in rows.items() if row is not None and not table.unschedulable[row]]
    try:
        for name in cordoned:
            await client.patch(NODE, name, {"spec": {"unschedulable": True}})
        for move in plan.moves:
            for leaving in mover.leaving(_records(mover, move)):
                await mover.move(leaving, partial(_remaining, mover, leaving.pods))
    finally:
        for name in cordoned:
            await client.patch(NODE, name, {"spec": {"unschedulable": None}})


def _records(mover: GangMover, move: GangMove) -> list[PodRecord]:
    """Return the pods of a move that are still there."""
    found = [(mover.cluster.pod(PodKey(*pod.pod.split("/"))), pod.uid) for pod in move.pods]
    return [record for record, uid in found if record is not None and record.uid == uid]


def _remaining(mover: GangMover, pods: Iterable[PodRecord]) -> list[PodKey]:
    """Return evicted pods that are still there, and pods of their owners that wait for a node."""
    uids = {record.uid for record in pods}
    owners = {owner for record in pods for owner in _owners(record)}
    return [
        record.key
        for record in mover.cluster.pods()
        if record.uid in uids or (record.status in _WAITING and not owners.isdisjoint(_owners(record)))
    ]


def _owners(record: PodRecord) -> set[str]:
    return {owner.uid for owner in record.pod.metadata.owner_references}

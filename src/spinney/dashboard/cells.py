"""A node as the map draws it: a cell per GPU, or where a cluster has none, per eighth of a node's CPU."""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Final, Literal

from spinney.api.core import Node
from spinney.api.quantity import milli
from spinney.cluster.devices import gpus_on
from spinney.cluster.pods import PodRecord
from spinney.cluster.resources import CPU
from spinney.dashboard.rows import NOBODY, Held, NodeRow, NodeState, text_of
from spinney.gangs.book import GangBook
from spinney.gangs.membership import membership
from spinney.gangs.sources import bare

Size = Callable[[PodRecord], float]
Unit = Literal["GPU", "CPU"]

CPU_CELLS: Final = 8
ZONE: Final = "topology.kubernetes.io/zone"
USUAL_LEVELS: Final = (ZONE, "topology.kubernetes.io/block", "topology.kubernetes.io/rack")
"""Labels of nodes that are taken for levels where no topology object names any."""
_UNREACHABLE: Final = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})


def node_row(
    node: Node,
    levels: Sequence[str],
    unit: Unit,
    *,
    placed: Iterable[PodRecord],
    promised: Iterable[PodRecord],
    gangs: GangBook,
) -> NodeRow:
    """Return a node with who holds its cells, and who was promised some of the rest."""
    cells = gpus_on(node) if unit == "GPU" else CPU_CELLS
    whole = milli(node.status.allocatable.get("cpu", 0))

    def size(record: PodRecord) -> float:
        if unit == "CPU":
            return CPU_CELLS * int(record.request.requests[CPU]) / whole if whole else 0.0
        share = record.request.share
        return record.request.gpus + (share.devices if share is not None else 0)

    labels = node.metadata.labels
    state, why = _state(node)
    held = [*_held(placed, size, gangs, cells, reserved=False)]
    left = cells - sum(each.cells for each in held)
    held += _held(promised, size, gangs, left, reserved=True)
    return NodeRow(
        name=node.metadata.name,
        path=tuple(labels.get(level, "") for level in levels),
        cells=cells,
        held=tuple(held),
        state=state,
        why=why,
    )


def _held(records: Iterable[PodRecord], size: Size, gangs: GangBook, room: int, *, reserved: bool) -> list[Held]:
    """Return what gangs hold, at most ``room`` cells; pods that share a device share its cell."""
    shared: set[str] = set()
    sizes: list[tuple[str, str, float]] = []
    for record in records:
        key, _ = membership(record)
        members = gangs.members(key)
        amount = size(record)
        if record.gpu_groups:
            amount -= len(shared.intersection(record.gpu_groups))
            shared.update(record.gpu_groups)
        name = NOBODY if key.source == bare.SOURCE else text_of(key)
        sizes.append((name, members.gang.queue if members is not None else "", amount))
    found: list[Held] = []
    used, given = 0.0, 0
    for (name, queue), group in groupby(sorted(sizes), key=lambda each: each[:2]):
        used += sum(amount for _, _, amount in group)
        cells = min(math.ceil(used), room) - given
        if cells > 0:
            found.append(Held(gang=name, queue=queue, cells=cells, reserved=reserved))
            given += cells
    return found


def _state(node: Node) -> tuple[NodeState, str]:
    ready = node.condition("Ready")
    if ready is not None and ready.status != "True":
        return "failed", f"Ready is {ready.status}" + (f": {ready.reason}" if ready.reason else "")
    if found := [taint.key for taint in node.spec.taints if taint.key in _UNREACHABLE]:
        return "failed", f"tainted {found[0]}"
    return ("cordoned", "cordoned: spec.unschedulable") if node.spec.unschedulable else ("ready", "")

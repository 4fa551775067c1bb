"""What the page is sent: nodes, gangs and queues as rows, who borrows from whom, and a change of some of them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, Literal

from spinney.api.struct import Struct
from spinney.cluster.resources import GPU_NAME
from spinney.gangs.tree import GangKey
from spinney.scheduler.cycle.scheduler import Scheduler
from spinney.sim.overview.gang_table import GangLine
from spinney.sim.overview.queue_table import QueueLine, queue_lines
from spinney.sim.snapshots.snapshot import Unseen

NodeState = Literal["ready", "cordoned", "failed"]

NOBODY: Final = ""
"""The gang of cells held by pods that are in no gang."""


class Held(Struct, frozen=True, kw_only=True):
    """Cells of a node that one gang has."""

    gang: str = NOBODY
    queue: str = ""
    cells: int = 0
    reserved: bool = False
    """True: promised to a pod that is not bound yet."""


class NodeRow(Struct, frozen=True, kw_only=True):
    """A node: where it is, how many cells it has, and who has them. What is left is free."""

    name: str
    path: tuple[str, ...] = ()
    """Its domain of each level, broad to narrow; empty where it has no such label."""
    cells: int = 0
    held: tuple[Held, ...] = ()
    state: NodeState = "ready"
    why: str = ""
    """What is wrong with a node that is not ready."""


class GangRow(GangLine, frozen=True, kw_only=True):
    """A gang in the table."""

    key: str
    created: datetime | None = None
    waiting_since: datetime | None = None


class Borrowing(Struct, frozen=True, kw_only=True):
    """GPUs a queue has above its quota, and those of its siblings that leave some of theirs unused."""

    gpus: float
    lenders: Mapping[str, float] = {}


class QueueRow(Struct, frozen=True, kw_only=True):
    """A queue in the tree."""

    line: QueueLine
    borrowing: Borrowing | None = None


class Delta(Struct, frozen=True, kw_only=True):
    """Rows that changed since the revision before; what is gone is named."""

    at: datetime
    nodes: tuple[NodeRow, ...] = ()
    gangs: tuple[GangRow, ...] = ()
    gone_nodes: tuple[str, ...] = ()
    gone_gangs: tuple[str, ...] = ()
    queues: tuple[QueueRow, ...] | None = None
    """All of them, if one changed."""
    levels: tuple[str, ...] | None = None
    trouble: str | None = None
    """Why what is shown may be out of date; empty when it no longer is."""

    def __bool__(self) -> bool:
        changed = self.nodes or self.gangs or self.gone_nodes or self.gone_gangs
        return bool(changed) or any(each is not None for each in (self.queues, self.levels, self.trouble))


class State(Struct, frozen=True, kw_only=True):
    """Everything, as of one revision."""

    revision: str
    at: datetime
    source: str
    unit: str
    """What a cell is: GPU, or CPU where a cell is an eighth of a node's."""
    levels: tuple[str, ...]
    nodes: tuple[NodeRow, ...]
    gangs: tuple[GangRow, ...]
    queues: tuple[QueueRow, ...]
    unseen: tuple[Unseen, ...] = ()
    namespaces: tuple[str, ...] | None = None
    """Those whose pods are shown; ``None`` for all."""
    trouble: str = ""
    """Why what is shown may be out of date."""


def text_of(key: GangKey) -> str:
    """Return a gang's key as addresses and rows spell it."""
    return "/".join(key)


def queue_rows(scheduler: Scheduler) -> tuple[QueueRow, ...]:
    """Return every queue with its shares, children below their parent and in order of name; broken ones last."""
    lines = _in_order(queue_lines(scheduler))
    return tuple(QueueRow(line=line, borrowing=_borrowing(line, lines)) for line in lines)


def _in_order(lines: Sequence[QueueLine]) -> list[QueueLine]:
    known = {line.name: line for line in lines if not line.problem}

    def place(line: QueueLine) -> tuple[bool, list[str]]:
        path = [line.name]
        while (parent := known[path[0]].parent if path[0] in known else None) in known and parent is not None:
            path.insert(0, parent)
        return bool(line.problem), path

    return sorted(lines, key=place)


def _borrowing(line: QueueLine, lines: Sequence[QueueLine]) -> Borrowing | None:
    """Return what a queue has beyond its quota, and which siblings leave some of theirs unused."""
    above = -_unused(line)
    if above <= 0:
        return None
    siblings = (each for each in lines if each.parent == line.parent and each.name != line.name)
    lenders = {each.name: unused for each in siblings if (unused := _unused(each)) > 0}
    return Borrowing(gpus=above, lenders=lenders)


def _unused(line: QueueLine) -> float:
    """Return how many GPUs of its quota a queue leaves; below zero for what it has beyond it."""
    share = line.shares.get(GPU_NAME)
    if share is None or share.quota == "unlimited":
        return 0.0
    return float(share.quota) - float(share.allocated)

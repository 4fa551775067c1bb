"""What the page is sent: nodes, gangs and queues as rows, and a change of some of them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final, Literal

from spinney.api.struct import Struct
from spinney.gangs.tree import GangKey
from spinney.sim.overview.gang_table import GangLine
from spinney.sim.overview.queue_table import QueueLine
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

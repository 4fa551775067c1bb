"""Queues as the page shows them: their books, and who borrows from whom."""

from collections.abc import Iterable, Sequence

from spinney.cluster.resources import GPU_NAME
from spinney.dashboard.rows import Borrowing, QueueRow
from spinney.scheduler.cycle.scheduler import Scheduler
from spinney.sim.overview.queue_table import QueueLine, lines_of


def queue_rows(scheduler: Scheduler) -> tuple[QueueRow, ...]:
    """Return every queue with its shares, children below their parent and in order of name; broken ones last."""
    lines = _in_order(lines_of(scheduler))
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
    lenders = {each.name: _unused(each) for each in _siblings(line, lines) if _unused(each) > 0}
    return Borrowing(gpus=above, lenders=lenders)


def _siblings(line: QueueLine, lines: Iterable[QueueLine]) -> Iterable[QueueLine]:
    return (each for each in lines if each.parent == line.parent and each.name != line.name)


def _unused(line: QueueLine) -> float:
    """Return how many GPUs of its quota a queue leaves; below zero for what it has beyond it."""
    share = line.shares.get(GPU_NAME)
    if share is None or share.quota == "unlimited":
        return 0.0
    return float(share.quota) - float(share.allocated)

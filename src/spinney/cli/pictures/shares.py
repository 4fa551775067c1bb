"""Queues as the picture shows them: a bar per queue of what its pods hold, with its quota marked.

Pure. What a queue holds is what the gangs in it hold, and a parent holds what its children do.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from rich.table import Table
from rich.text import Text

from spinney.api.core import Pod
from spinney.api.kai import Queue
from spinney.api.labels import KAI_QUEUE
from spinney.cli.pictures.gpus import gpus_of
from spinney.cli.terminal.printable import printable

_BAR: Final = 12
_SHORT_BAR: Final = 8
"""Cells of a bar; the whole cluster fills it."""


@dataclass(frozen=True)
class QueueShare:
    """One queue: where it stands in the tree, its quota, and the GPUs its pods hold and wait for."""

    name: str
    depth: int
    quota: float | None
    """``None``: unlimited."""
    held: int
    waiting: int


class Use(NamedTuple):
    """The GPUs that a gang or a pod holds and waits for, and the queue they count in."""

    queue: str
    held: int
    waiting: int


def uses_of(pods: Iterable[Pod]) -> list[Use]:
    """Return what pods use that say themselves which queue they are in."""
    return [
        Use(queue, gpus_of(pod) if pod.spec.node_name else 0, 0 if pod.spec.node_name else gpus_of(pod))
        for pod in pods
        if not pod.terminal and (queue := pod.metadata.labels.get(KAI_QUEUE))
    ]


def queue_shares(queues: Iterable[Queue], uses: Iterable[Use]) -> list[QueueShare]:
    """Return every queue, children below their parent, with what is held and waited for in it."""
    known = {queue.metadata.name: queue for queue in sorted(queues, key=lambda queue: queue.metadata.name)}
    held, waiting = Counter[str](), Counter[str]()
    for use in uses:
        for name in _upwards(use.queue, known):
            held[name] += use.held
            waiting[name] += use.waiting

    def descend(parent: str | None, depth: int) -> Iterator[QueueShare]:
        for name, queue in known.items():
            above = queue.spec.parent_queue if queue.spec.parent_queue in known else None
            if above == parent:
                yield QueueShare(name, depth, _quota(queue), held[name], waiting[name])
                yield from descend(name, depth + 1)

    return list(descend(None, 0))


def draw_shares(shares: Sequence[QueueShare], total: int, *, short: bool = False) -> Table:
    """Return a table with a bar per queue, out of ``total`` GPUs; in short, it is half as wide."""
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column("queue", no_wrap=True)
    table.add_column("GPUs")
    for heading in ("held/quota", "wait") if short else ("held", "quota", "waiting"):
        table.add_column(heading, justify="right")
    for share in shares:
        quota = "any" if share.quota is None else f"{share.quota:g}"
        figures = (f"{share.held}/{quota}",) if short else (str(share.held), quota)
        table.add_row(
            Text("  " * share.depth + printable(share.name)),
            _bar(share, max(total, 1), _SHORT_BAR if short else _BAR),
            *figures,
            Text(str(share.waiting), style="red" if share.waiting else "dim"),
        )
    return table


def _bar(share: QueueShare, total: int, length: int) -> Text:
    filled = -(-share.held * length // total)
    mark = None if share.quota is None else min(int(share.quota * length / total), length - 1)
    bar = Text()
    for cell in range(length):
        over = mark is not None and cell >= mark
        text = "━" if cell < filled else "│" if cell == mark else "╌"
        bar.append(text, style="dim" if cell >= filled else "yellow" if over else "green")
    return bar


def _upwards(name: str | None, known: dict[str, Queue]) -> Iterator[str]:
    """Yield a queue and everything above it; a tree that bites its tail is left where it would begin again."""
    seen: set[str] = set()
    while name is not None and name in known and name not in seen:
        seen.add(name)
        yield name
        name = known[name].spec.parent_queue


def _quota(queue: Queue) -> float | None:
    resources = queue.spec.resources
    quota = resources.gpu.quota if resources is not None else 0
    return None if quota is not None and float(quota) < 0 else float(quota or 0)

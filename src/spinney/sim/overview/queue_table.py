"""What queues are entitled to, hold and ask for: the proportion plugin's books, as values to show."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from spinney.api.kai import QUEUE, Queue
from spinney.api.kueue import CLUSTER_QUEUE, ClusterQueue
from spinney.api.quantity import milli, value
from spinney.api.struct import Struct
from spinney.scheduler.cycle.scheduler import Scheduler
from spinney.scheduler.fairshare import Amounts
from spinney.scheduler.plugins.proportion import ProportionPlugin
from spinney.sim.whatif.simulation import Simulation

_GIB: Final = 2**30
_UNLIMITED: Final = "unlimited"


class Share(Struct, frozen=True, kw_only=True):
    """One queue and one resource, in Kubernetes quantities; ``unlimited`` where there is no bound."""

    quota: str
    limit: str
    fair_share: str
    allocated: str
    requested: str

    @property
    def is_over_limit(self) -> bool:
        """Tell whether more is asked for than the queue may ever hold."""
        return self.limit != _UNLIMITED and milli(self.requested) > milli(self.limit)

    def shown(self, resource: str) -> "Share":
        """Return it as people read it: memory in GiB."""
        if resource != "memory":
            return self
        return Share(**{name: _in_gib(getattr(self, name)) for name in self.__struct_fields__})


class QueueLine(Struct, frozen=True, kw_only=True):
    """One queue: where it stands in the tree, its shares by resource, and how many gangs wait in it."""

    name: str
    parent: str | None = None
    depth: int = 0
    priority: int = 0
    shares: Mapping[str, Share] = {}
    pending_gangs: int = 0
    problem: str = ""
    """Why the queue cannot be used; empty if it can."""


def queue_lines(scheduler: Scheduler) -> list[QueueLine]:
    """Return every queue, children below their parent, with the books as of now."""
    option = next((each for each in scheduler.config.plugins if each.name == "proportion"), None)
    plugin = ProportionPlugin(option.arguments if option is not None else {})
    session = scheduler.open_session()
    try:
        plugin.on_session_open(session)
    finally:
        session.close()
    tree, books = session.queues, plugin.books
    gangs = session.snapshot.gangs
    pending = Counter(gangs.gangs[key].gang.queue for key in gangs.pending)
    lines: list[QueueLine] = []

    def descend(position: int, depth: int) -> None:
        book = books.pages[position]
        queue = book.queue
        lines.append(
            QueueLine(
                name=queue.name,
                parent=queue.parent,
                depth=depth,
                priority=queue.priority,
                shares=_shares(queue.quota, queue.limit, book.fair_share, book.allocated, book.requested),
                pending_gangs=pending[queue.name],
            )
        )
        for child in tree.children[position]:
            descend(child, depth + 1)

    for root in tree.roots:
        descend(root, 0)
    missing = sorted(set(pending) - set(tree.index) - set(tree.dropped))
    return [
        *lines,
        *(QueueLine(name=name, problem=reason, pending_gangs=pending[name]) for name, reason in tree.dropped.items()),
        *(
            QueueLine(name=name, problem="does not exist, and gangs name it", pending_gangs=pending[name])
            for name in missing
        ),
    ]


def has_queues(simulation: Simulation) -> bool:
    """Tell whether the cluster has Queue objects, or Kueue's; else every queue that a job names may hold all of it."""
    return bool(simulation.of(QUEUE, Queue) or simulation.of(CLUSTER_QUEUE, ClusterQueue))


def _in_gib(text: str) -> str:
    return text if text == _UNLIMITED else f"{value(text) / _GIB:.1f}Gi"


def _shares(quota: Amounts, limit: Amounts, fair: Amounts, allocated: Amounts, requested: Amounts) -> dict[str, Share]:
    columns = [each.describe() for each in (quota, limit, fair, allocated, requested)]
    return {
        resource: Share(**dict(zip(Share.__struct_fields__, (column[resource] for column in columns), strict=True)))
        for resource in columns[0]
    }

"""At most so many instances of an application on a node: a rule of some traces, as a plugin of the replay."""

from collections import Counter, defaultdict
from typing import Final

import numpy as np

from spinney.cluster.table import Mask
from spinney.extensions.arguments import NoArguments
from spinney.scheduler.framework.events import BatchEvent, EventHandler
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.nodes import NodeSet
from spinney.scheduler.framework.plugin import Plugin
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo

APPLICATION: Final = "replay.spinney.dev/application"
MOST_PER_NODE: Final = "replay.spinney.dev/most-per-node"


class ApplicationBook:
    """How many pods of each application every node holds. Mutable."""

    def __init__(self) -> None:
        self._counts: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def put(self, application: str, node: str, step: int = 1) -> None:
        """Note that a pod came to a node, or with ``step`` -1 that one went."""
        if application:
            self._counts[application][node] += step

    def of(self, application: str) -> Counter[str]:
        """Return the pods of an application by node; not to be written to."""
        return self._counts[application]


class MostPerNode(Plugin):
    """Refuses nodes that hold as many pods of the application as they may."""

    name = "replay-limits"
    arguments_type = NoArguments

    def __init__(self, book: ApplicationBook) -> None:
        super().__init__()
        self._book = book

    def on_session_open(self, session: Session) -> None:
        """Register the rule, and follow what this session places."""
        self._session = session
        self._placed = ApplicationBook()
        session.add_predicate_columns(
            self._has_room, applies_to=lambda task: MOST_PER_NODE in task.pod.metadata.annotations
        )
        session.add_event_handler(
            EventHandler(
                allocate_many=lambda event: self._follow(event, 1),
                deallocate_many=lambda event: self._follow(event, -1),
            )
        )

    def _follow(self, event: BatchEvent, step: int) -> None:
        for task in event.tasks:
            self._placed.put(task.pod.metadata.labels.get(APPLICATION, ""), task.node_name, step)

    def _has_room(self, task: PodInfo, job: PodGroupInfo, nodes: NodeSet) -> Mask:
        application = task.pod.metadata.labels[APPLICATION]
        most = int(task.pod.metadata.annotations[MOST_PER_NODE])
        counts = self._book.of(application) + self._placed.of(application)
        table = self._session.nodes.table
        full = [table.find(node) for node, count in counts.items() if count >= most]
        taken = np.zeros(table.capacity, dtype=np.bool_)
        taken[[row for row in full if row is not None]] = True
        return ~taken[nodes.rows]

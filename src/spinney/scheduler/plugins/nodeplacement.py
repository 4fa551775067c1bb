"""nodeplacement: fill nodes one after the other (``binpack``), or use the emptiest (``spread``).

Arguments ``gpu`` and ``cpu`` say which, for pods that need GPUs and for those that do not. What counts is what is free
once everything terminating is gone. Packing scores a node by how little of the largest node's capacity it has free, so
that placing a pod on one node leaves the scores of the others as they are.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from spinney.cluster.classes import RequestClass
from spinney.cluster.resources import CPU, GPU
from spinney.extensions.arguments import read_arguments
from spinney.scheduler import scores
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.nodes import NodeSet, Scores
from spinney.scheduler.framework.plugin import Plugin
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo
from spinney.scheduler.plugins.resourcetype import needs_no_gpu

Strategy = Literal["binpack", "spread"]


class Strategies(msgspec.Struct, frozen=True):
    """How nodes are filled, for pods that need GPUs and for those that do not."""

    gpu: Strategy = "binpack"
    cpu: Strategy = "binpack"


class NodePlacement(Plugin):
    """Scores nodes by how full they are."""

    name = "nodeplacement"
    arguments_type = Strategies
    treats_alike = True

    def on_session_open(self, session: Session) -> None:
        """Register one score for pods that need GPUs and one for those that do not."""
        chosen = read_arguments(Strategies, self.arguments)
        self._register(session, GPU, chosen.gpu, wants_gpu=True)
        self._register(session, CPU, chosen.cpu, wants_gpu=False)

    def _register(self, session: Session, column: int, strategy: Strategy, *, wants_gpu: bool) -> None:
        table = session.nodes.table
        everything = session.nodes.all.rows
        capacity = table.allocatable[:, column]
        if strategy == "spread" and column == GPU:
            capacity = np.maximum(table.gpu_count, capacity)
        largest = float(max(capacity[everything].max(initial=0), 1))

        def packed(task: PodInfo, job: PodGroupInfo, nodes: NodeSet) -> Scores:
            free = table.idle[nodes.rows, column] + table.releasing[nodes.rows, column]
            density: Scores = 1.0 - np.clip(free / largest, 0.0, 1.0)
            return scores.MAX_DENSITY * density

        def spread(task: PodInfo, job: PodGroupInfo, nodes: NodeSet) -> Scores:
            free = table.idle[nodes.rows, column] + table.releasing[nodes.rows, column]
            emptiness: Scores = np.clip(free / np.maximum(capacity[nodes.rows], 1), 0.0, 1.0)
            return scores.SPREAD * emptiness

        def few(request: RequestClass, rows: Sequence[int]) -> list[float]:
            idle, releasing = table.idle.item, table.releasing.item
            free = [idle(row, column) + releasing(row, column) for row in rows]
            if strategy == "binpack":
                return [scores.MAX_DENSITY * (1.0 - min(max(each / largest, 0.0), 1.0)) for each in free]
            most = [max(capacity.item(row), 1) for row in rows]
            return [scores.SPREAD * min(max(each / of, 0.0), 1.0) for each, of in zip(free, most, strict=True)]

        session.add_node_order_columns(
            packed if strategy == "binpack" else spread,
            per_job=False,
            monotone=strategy == "binpack",
            for_requests=lambda request: needs_no_gpu(request) != wants_gpu,
            few=few,
        )

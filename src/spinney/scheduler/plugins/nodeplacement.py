"""nodeplacement: fill nodes one after the other (``binpack``), or use the emptiest (``spread``).

Arguments ``gpu`` and ``cpu`` say which, for pods that need GPUs and for those that do not. What counts is what is free
once everything terminating is gone. Packing scores a node by how little of the largest node's capacity it has free, so
that placing a pod on one node leaves the scores of the others as they are.
"""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from spinney.cluster.resources import CPU, GPU
from spinney.scheduler import scores
from spinney.scheduler.config import InvalidConfiguration
from spinney.scheduler.jobs import PodGroupInfo
from spinney.scheduler.nodes import NodeSet, Scores
from spinney.scheduler.plugin import Plugin
from spinney.scheduler.plugins.resourcetype import needs_no_gpu
from spinney.scheduler.session import Session
from spinney.scheduler.tasks import PodInfo

BINPACK = "binpack"
SPREAD = "spread"


class NodePlacement(Plugin):
    """Scores nodes by how full they are."""

    name = "nodeplacement"

    def __init__(self, arguments: Mapping[str, str] = MappingProxyType({})) -> None:
        super().__init__(arguments)
        self._strategies = {key: arguments.get(key, BINPACK) for key in ("gpu", "cpu")}
        for key, strategy in self._strategies.items():
            if strategy not in {BINPACK, SPREAD}:
                raise InvalidConfiguration(
                    f"plugin nodeplacement: argument {key} is {strategy!r}, expected {BINPACK} or {SPREAD}"
                )

    def on_session_open(self, session: Session) -> None:
        """Register one score for pods that need GPUs and one for those that do not."""
        for kind, column in (("gpu", GPU), ("cpu", CPU)):
            self._register(session, column, self._strategies[kind], wants_gpu=kind == "gpu")

    def _register(self, session: Session, column: int, strategy: str, *, wants_gpu: bool) -> None:
        table = session.nodes.table
        everything = session.nodes.all.rows
        capacity = table.allocatable[:, column]
        if strategy == SPREAD and column == GPU:
            capacity = np.maximum(table.gpu_count, capacity)
        largest = float(max(capacity[everything].max(initial=0), 1))

        def packed(task: PodInfo, job: PodGroupInfo, nodes: NodeSet) -> Scores:
            del task, job
            free = table.idle[nodes.rows, column] + table.releasing[nodes.rows, column]
            density: Scores = 1.0 - np.clip(free / largest, 0.0, 1.0)
            return scores.MAX_DENSITY * density

        def spread(task: PodInfo, job: PodGroupInfo, nodes: NodeSet) -> Scores:
            del task, job
            free = table.idle[nodes.rows, column] + table.releasing[nodes.rows, column]
            emptiness: Scores = np.clip(free / np.maximum(capacity[nodes.rows], 1), 0.0, 1.0)
            return scores.SPREAD * emptiness

        session.add_node_order_columns(
            packed if strategy == BINPACK else spread,
            per_job=False,
            monotone=strategy == BINPACK,
            applies_to=lambda task: needs_no_gpu(task) != wants_gpu,
        )

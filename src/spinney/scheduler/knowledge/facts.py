"""What can be read of a pod, its job and a node, one fact at a time, so that it can be looked up for others as well.

A fact about a pod has one value for a task. A fact about a node has a column: one value for each of some rows, in which
equal values mean that a function which reads nothing else could not tell the nodes apart.
"""

from collections.abc import Callable, Hashable
from functools import cache
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from spinney.cluster.devices import DEVICE
from spinney.cluster.journal import Rows
from spinney.cluster.resources import GPU
from spinney.scheduler.framework.nodes import Nodes
from spinney.scheduler.framework.tasks import PodInfo

Column = npt.NDArray[Any]


class PodFact(msgspec.Struct, frozen=True, eq=False):
    """Something about a pod or its job. There is one object for each fact, so facts are compared by identity."""

    of: Callable[[PodInfo], Hashable]


class NodeFact(msgspec.Struct, frozen=True, eq=False):
    """Something about a node; ``of`` gives the column for some rows."""

    of: Callable[[Nodes, Rows], Column]
    by_use: bool = False
    """It changes with what is on the node."""


Fact = PodFact | NodeFact


@cache
def pod_attribute(*names: str) -> PodFact:
    """Return the fact that reading attributes of a task, one of the other, gives; the value is never changed."""

    def of(task: PodInfo) -> Hashable:
        value: Any = task
        for name in names:
            value = getattr(value, name)
        return value if isinstance(value, Hashable) else id(value)

    return PodFact(of)


@cache
def pod_label(key: str) -> PodFact:
    """Return the fact of a label of a pod."""
    return PodFact(lambda task: task.record.pod.metadata.labels.get(key))


@cache
def pod_annotation(key: str) -> PodFact:
    """Return the fact of an annotation of a pod."""
    return PodFact(lambda task: task.record.pod.metadata.annotations.get(key))


@cache
def preemptible(inference: bool) -> PodFact:
    """Return the fact whether the job of a pod may be preempted."""
    return PodFact(lambda task: task.job.is_preemptible_job(inference))


WHOLE_POD = PodFact(lambda task: task.record.uid)
"""Anything about the object of a pod."""
WHOLE_NODE = NodeFact(lambda nodes, rows: rows)
"""Anything about a node that stays as it is while a session lasts; so each node is a case of its own."""
GPUS = NodeFact(lambda nodes, rows: nodes.table.allocatable[rows, GPU])
GPU_MEMORY = NodeFact(lambda nodes, rows: nodes.table.gpu_memory[rows])
IDLE_GPUS = NodeFact(lambda nodes, rows: nodes.table.idle[rows, GPU], by_use=True)
RELEASING_GPUS = NodeFact(lambda nodes, rows: nodes.table.releasing[rows, GPU], by_use=True)
HAS_IDLE_GPU = NodeFact(lambda nodes, rows: nodes.table.idle[rows, GPU] > 0, by_use=True)


def _utilization(nodes: Nodes, rows: Rows) -> Column:
    offered = nodes.table.allocatable[rows, GPU]
    used = nodes.table.used[rows, GPU].astype(np.float64)
    for row in nodes.ledger.shared.rows():
        shared = nodes.ledger.shared.of_row(row).values()
        used[rows == row] += sum(use.used for use in shared) / DEVICE - len(shared)
    found: Column = np.divide(used, offered, out=np.zeros(len(rows)), where=offered > 0)
    return found


GPU_UTILIZATION = NodeFact(_utilization, by_use=True)


@cache
def node_label(key: str) -> NodeFact:
    """Return the fact of a label of a node."""
    return NodeFact(lambda nodes, rows: nodes.table.labels.column(key)[rows])


@cache
def node_amount(matrix: str, resource: str) -> NodeFact:
    """Return the fact of how much of a resource a node offers, or has in use, free or terminating."""

    def of(nodes: Nodes, rows: Rows) -> Column:
        amounts, column = getattr(nodes.table, matrix), nodes.table.axis.find(resource)
        if column is None or column >= amounts.shape[1]:
            return np.zeros(len(rows), dtype=np.int64)
        found: Column = amounts[rows, column]
        return found

    return NodeFact(of, by_use=matrix != "allocatable")

"""Nodes as plugins see them: one by one, and as sets.

A :class:`NodeSet` is an immutable list of nodes in the order of their names, kept as row numbers of the session's node
table. It is a sequence of :class:`NodeInfo`, for a plugin that looks at one node after the other, and it gives columns
for one that judges all of them at once.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from spinney.api.affinity import Taint
from spinney.api.core import Node, Pod
from spinney.api.guarding import guarded
from spinney.cluster.classes import RequestClass
from spinney.cluster.devices import DEVICE
from spinney.cluster.filters.view import ClusterView
from spinney.cluster.fitting import fit_later_and_now
from spinney.cluster.journal import Rows
from spinney.cluster.ledger import Ledger
from spinney.cluster.pods import PodIndex, PodRecord
from spinney.cluster.resources import GPU, Vector
from spinney.cluster.sharing import DeviceUse
from spinney.cluster.table import Mask
from spinney.scheduler.framework.pods_on_nodes import PodOnNode

if TYPE_CHECKING:
    from spinney.scheduler.framework.tasks import PodInfo

Scores = npt.NDArray[np.float64]
"""One score per node."""


class _LastFit(NamedTuple):
    """Where a request was last found to fit, and when that was."""

    rows: Rows
    request: RequestClass
    moment: tuple[int, int]
    later: Mask
    now: Mask


class Nodes:
    """The nodes of a session: their ledger, the pods on them, and one :class:`NodeInfo` each. Mutable.

    Who is on which node, and what filters ask about placed pods, is costly to keep and seldom asked, so both are
    brought up to date when they are.
    """

    def __init__(self, ledger: Ledger, pods: PodIndex, view: ClusterView, *, rule_carriers: int) -> None:
        self.ledger = ledger
        self.table = ledger.table
        self._pods = pods
        self._arrivals: list[tuple[Sequence[PodInfo | PodRecord], list[int]]] = []
        """Batches of tasks, or pods, and their rows that are not in the index of pods yet."""
        self.all = NodeSet(self, ledger.table.rows())
        self._view = view
        self.rule_carriers = rule_carriers
        """How many placed pods have rules about where other pods go."""
        self._last_fit: _LastFit | None = None
        self._everywhere = np.ones(self.table.capacity, dtype=np.bool_)
        self._everywhere.setflags(write=False)
        self.visitors: Callable[[int], Iterable[PodRecord]] | None = None
        """Which pods are on a row besides, while it is tried what it would be like."""
        self._moves: list[tuple[PodRecord, int]] = []
        self._carrier_moves: list[tuple[PodRecord, int]] = []
        self._infos: dict[int, NodeInfo] = {}

    @property
    def pods(self) -> PodIndex:
        """Return who is on which row, every placement of this session included."""
        if self._arrivals:
            arrivals, self._arrivals = self._arrivals, []
            for batch, rows in arrivals:
                for each, row in zip(batch, rows, strict=True):
                    self.put(each if isinstance(each, PodRecord) else each.record, row)
        return self._pods

    @property
    def surroundings(self) -> ClusterView:
        """Return what filters look at that do not ask about pods; pods placed in this session may be missing."""
        return self._view

    @property
    def view(self) -> ClusterView:
        """Return what filters look at, with every placement of this session in it."""
        self.pods  # noqa: B018 - brings the moves up to date
        self._follow(self._carrier_moves)
        self._follow(self._moves)
        return self._view

    def have_rules_about(self, pods: Iterable[Pod]) -> bool:
        """Tell whether placed pods have rules about where any of ``pods`` goes."""
        if not self.rule_carriers:
            return False
        self._follow(self._carrier_moves)  # a question about rules need not wait for all the pods that carry none
        placed, namespaces = self._view.pods, self._view.namespaces
        for pod in pods:
            labels, namespace = pod.metadata.labels, pod.metadata.namespace or ""
            if placed.have_rules_about(namespace, namespaces.get(namespace, {}), labels):
                return True
        return False

    def resource_fit(self, request: RequestClass, rows: Rows) -> tuple[Mask, Mask]:
        """Return, per row, whether the request fits once what is terminating is gone, and whether it fits now.

        Neither is to be written to: the next equal question, before anything is booked, gets the same arrays.
        """
        known, moment = self._last_fit, (self.table.usage.position, self.table.tries)
        if known is None or known.rows is not rows or known.request is not request or known.moment != moment:
            later, now = fit_later_and_now(self.ledger, request, rows)
            known = self._last_fit = _LastFit(rows, request, moment, later, now)
        return known.later, known.now

    def note_fit(self, request: RequestClass, rows: Rows, *, now: Mask) -> None:
        """Note that the request fits on all of ``rows`` later, and where now: for the next question about them."""
        later = self._everywhere[: len(rows)]
        self._last_fit = _LastFit(rows, request, (self.table.usage.position, self.table.tries), later, now)

    def put_records(self, records: Sequence[PodRecord], rows: list[int]) -> None:
        """Note that pending pods without rules about others are on rows, for good."""
        self._arrivals.append((records, rows))

    def put_many(self, tasks: Sequence["PodInfo"], rows: list[int]) -> None:
        """Note that pending tasks, all of one request class, are on rows."""
        if not tasks[0].record.request.carries_rules:
            self._arrivals.append((tasks, rows))
            return
        for task, row in zip(tasks, rows, strict=True):
            self.put(task.record, row)

    def take_many(self, tasks: Sequence["PodInfo"], rows: list[int]) -> None:
        """Undo :meth:`put_many`."""
        if self._arrivals and self._arrivals[-1][0] is tasks:
            self._arrivals.pop()
            return
        for task, row in zip(reversed(tasks), reversed(rows), strict=True):
            self.take(task.record, row)

    def put(self, record: PodRecord, row: int) -> bool:
        """Note that a pod is on a row; return whether it was not there before."""
        new, carries = self.pods.add(row, record), record.request.carries_rules
        (self._carrier_moves if carries else self._moves).append((record, row))
        self.rule_carriers += new and carries
        return new

    def take(self, record: PodRecord, row: int) -> None:
        """Note that a pod is no longer on a row."""
        there, carries = self.pods.remove(row, record.key), record.request.carries_rules
        (self._carrier_moves if carries else self._moves).append((record, -1))
        self.rule_carriers -= there and carries

    def _follow(self, moves: list[tuple[PodRecord, int]]) -> None:
        for record, row in moves:
            if row < 0:
                self._view.pods.remove(record.key)
            else:
                self._view.pods.place(record.pod, row, record.request)
        moves.clear()

    def records_on(self, row: int) -> Collection[PodRecord]:
        """Return the pods on a row, those that visit it while something is tried included."""
        pods = self.pods.of_row(row).values()
        return pods if self.visitors is None else [*pods, *self.visitors(row)]

    def info(self, row: int) -> "NodeInfo":
        """Return the node of a row."""
        info = self._infos.get(row)
        if info is None:
            info = self._infos[row] = NodeInfo(self, row)
        return info

    def named(self, name: str) -> "NodeInfo":
        """Return the node called ``name``; raises :class:`~spinney.cluster.table.NodeNotInTable`."""
        return self.info(self.table.row(name))


class NodeObject:
    """The Kubernetes object of a node, with its metadata at hand."""

    __slots__ = ("_node",)

    def __init__(self, node: Node) -> None:
        self._node = node

    @property
    def name(self) -> str:
        """Return the name."""
        return self._node.metadata.name

    @property
    def labels(self) -> Mapping[str, str]:
        """Return the labels; they cannot be written to."""
        return MappingProxyType(self._node.metadata.labels)

    @property
    def annotations(self) -> Mapping[str, str]:
        """Return the annotations; they cannot be written to."""
        return MappingProxyType(self._node.metadata.annotations)

    @property
    def taints(self) -> tuple[Taint, ...]:
        """Return the taints."""
        return self._node.spec.taints

    @property
    def projection(self) -> Node:
        """Return the object as it was decoded, to look at: its mappings cannot be written to."""
        return guarded(self._node)


class NodeInfo:
    """One node and what is on it, as the session sees it now."""

    __slots__ = ("_nodes", "name", "node", "row")

    _nodes: Nodes
    name: str
    node: NodeObject
    row: int

    def __init__(self, nodes: Nodes, row: int) -> None:
        node = nodes.table.nodes[row]
        assert node is not None, "rows of a session are nodes"
        keep = object.__setattr__
        keep(self, "_nodes", nodes)
        keep(self, "row", row)
        keep(self, "name", nodes.table.names[row])
        keep(self, "node", NodeObject(node))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a node is what the cluster says; {name} of {self.name} cannot be set")

    def __repr__(self) -> str:
        return f"NodeInfo({self.name})"

    @property
    def labels(self) -> Mapping[str, str]:
        """Return the labels of the node."""
        return self.node.labels

    @property
    def allocatable(self) -> dict[str, int]:
        """Return what the node offers, by resource: millicores, bytes, units."""
        return self._amounts(self._nodes.table.allocatable)

    @property
    def used(self) -> dict[str, int]:
        """Return what pods hold or were promised, by resource."""
        return self._amounts(self._nodes.table.used)

    @property
    def idle(self) -> dict[str, int]:
        """Return what is free now, by resource."""
        return self._amounts(self._nodes.table.idle)

    @property
    def releasing(self) -> dict[str, int]:
        """Return what terminating pods will give back and nobody was promised, by resource."""
        return self._amounts(self._nodes.table.releasing)

    @property
    def gpus(self) -> int:
        """Return the GPUs of the node."""
        return self._nodes.table.allocatable.item(self.row, GPU)

    @property
    def idle_gpus(self) -> int:
        """Return the whole GPUs that are free now."""
        return self._nodes.table.idle.item(self.row, GPU)

    @property
    def releasing_gpus(self) -> int:
        """Return the whole GPUs that will be free and are promised to nobody."""
        return self._nodes.table.releasing.item(self.row, GPU)

    @property
    def gpu_memory(self) -> int:
        """Return the memory of one GPU of the node, in MiB."""
        return self._nodes.table.gpu_memory.item(self.row)

    @property
    def shared_gpus(self) -> Mapping[str, DeviceUse]:
        """Return the shared GPUs by group id."""
        return MappingProxyType(self._nodes.ledger.shared.of_row(self.row))

    @property
    def pods(self) -> Sequence[PodOnNode]:
        """Return the pods on the node, those placed in this session included."""
        return tuple(map(PodOnNode, self._nodes.records_on(self.row)))

    def has_available_gpus(self) -> bool:
        """Tell whether a whole GPU is free now."""
        return self._nodes.table.idle.item(self.row, GPU) > 0

    def gpu_utilization(self) -> float:
        """Return the part of the node's GPUs in use or promised, 0 to 1; shared GPUs count as far as they are used."""
        gpus = self.gpus
        if gpus == 0:
            return 0.0
        whole = self._nodes.table.used.item(self.row, GPU)
        shared = self.shared_gpus.values()
        return (whole - len(shared) + sum(use.used for use in shared) / DEVICE) / gpus

    def _amounts(self, matrix: npt.NDArray[np.int64]) -> dict[str, int]:
        return self._nodes.table.axis.amounts(matrix[self.row])


class NodeSet(Sequence[NodeInfo]):
    """Nodes in the order of their names; immutable. Columns are aligned with that order."""

    __slots__ = ("_nodes", "rows")

    _nodes: Nodes
    rows: Rows
    """Rows of the session's node table. Cannot be written to."""

    def __init__(self, nodes: Nodes, rows: Rows) -> None:
        rows.setflags(write=False)
        keep = object.__setattr__
        keep(self, "_nodes", nodes)
        keep(self, "rows", rows)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a set of nodes cannot be changed; make another one instead of setting its {name}")

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> NodeInfo: ...
    @overload
    def __getitem__(self, index: slice) -> "NodeSet": ...
    def __getitem__(self, index: int | slice) -> "NodeInfo | NodeSet":
        if isinstance(index, slice):
            return NodeSet(self._nodes, self.rows[index])
        return self._nodes.info(int(self.rows[index]))

    def __iter__(self) -> Iterator[NodeInfo]:
        return map(self._nodes.info, self.rows.tolist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeSet) and np.array_equal(self.rows, other.rows)

    def __hash__(self) -> int:
        return hash(self.rows.tobytes())

    def __repr__(self) -> str:
        return f"NodeSet([{', '.join(self.names)}])"

    @property
    def names(self) -> list[str]:
        """Return the names of the nodes."""
        table = self._nodes.table
        return [table.names[row] for row in self.rows.tolist()]

    def where(self, mask: Mask) -> "NodeSet":
        """Return the nodes for which ``mask``, aligned with this set, is true."""
        return NodeSet(self._nodes, self.rows[mask])

    def having(self, nodes: Iterable[NodeInfo]) -> "NodeSet":
        """Return those of ``nodes`` that are in this set."""
        wanted = np.fromiter((node.row for node in nodes), dtype=np.intp)
        return self.where(np.isin(self.rows, wanted))

    def labelled(self, key: str, value: str | None = None) -> Mask:
        """Return which nodes have the label, with ``value`` if one is given."""
        numbers = self._nodes.table.labels.column(key)[self.rows]
        if value is None:
            return numbers >= 0
        wanted = self._nodes.table.labels.value_id(key, value)
        found: Mask = (numbers == wanted) & (numbers >= 0)
        return found

    def allocatable(self, resource: str) -> Vector:
        """Return what each node offers of ``resource``."""
        return self._column(self._nodes.table.allocatable, resource)

    def used(self, resource: str) -> Vector:
        """Return what pods hold or were promised of ``resource`` on each node."""
        return self._column(self._nodes.table.used, resource)

    def idle(self, resource: str) -> Vector:
        """Return what is free now of ``resource`` on each node."""
        return self._column(self._nodes.table.idle, resource)

    def releasing(self, resource: str) -> Vector:
        """Return what will be given back and is not promised of ``resource`` on each node."""
        return self._column(self._nodes.table.releasing, resource)

    def _column(self, matrix: npt.NDArray[np.int64], resource: str) -> Vector:
        column = self._nodes.table.axis.find(resource)
        if column is None:
            return np.zeros(len(self.rows), dtype=np.int64)
        here: Vector = matrix[self.rows, column]
        return here


class FirstChoice(NodeSet):
    """The set to try first, which stays the first for jobs like this one.

    A plugin that divides nodes promises that with it: as long as it has room for such a job, and nothing but such jobs
    is placed on it, it would be the first again.
    """

    __slots__ = ()

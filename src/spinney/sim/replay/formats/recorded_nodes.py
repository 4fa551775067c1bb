"""The nodes of a recording: what they had, when they were missing or closed, and how they changed.

A node that a snapshot lacks has failed until one has it again; one that is cordoned or not ready takes no new pods for
that time. Its labels, taints and resources are those of the snapshots, each from its moment on.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from spinney.api.core import Node, NodeSpec, NodeStatus
from spinney.api.labels import HOSTNAME
from spinney.api.meta import Metadata
from spinney.api.pod_requests import amounts_of, most_of
from spinney.cluster.devices import device_columns
from spinney.cluster.resources import CPU_NAME, GPU_NAME, MEMORY_NAME
from spinney.sim.replay.objects import MODEL
from spinney.sim.replay.trace import ClusterChange, Machine, Outage
from spinney.sim.snapshots.snapshot import Differing

MEBIBYTE: Final = 1 << 20
_COUNTED: Final = frozenset({CPU_NAME, MEMORY_NAME, GPU_NAME})


class RecordedNodes:
    """The nodes that snapshots have shown so far. Mutable."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        """As each was last."""
        self._first: dict[str, Node] = {}
        self._most: dict[str, Mapping[str, int]] = {}
        """The most that each offered, of each resource."""
        self._missing, self._closed = _Stretches(), _Stretches()
        self.changes: list[ClusterChange] = []
        self.least_gpu_memory: int | None = None
        """MiB of the smallest device, where nodes say how large theirs are."""

    def see(self, at: float, nodes: Iterable[Differing]) -> None:
        """Take in what of nodes is not as it was in the snapshot before."""
        for each in nodes:
            name = each.identity[1]
            if each.new is None:
                self._missing.begin(name, at)
                self._closed.end(name, at)
            else:
                self._see_one(name, at, each.new)

    def _see_one(self, name: str, at: float, found: Node) -> None:
        node = _as_scheduled_on(found)
        if name not in self._nodes:
            self._first[name] = node
            self._missing.begin(name, 0.0)  # of no length if it is there from the beginning
        self._missing.end(name, at)
        (self._closed.begin if _is_closed(found) else self._closed.end)(name, at)
        if self._nodes.get(name) != node:
            self._nodes[name] = node
            self.changes.append(ClusterChange(at, node))
            self._most[name] = most_of(self._most.get(name, {}), amounts_of(node.status.allocatable))
            devices = device_columns(node.metadata.labels)
            if devices["gpu_memory_known"]:
                self.least_gpu_memory = min(devices["gpu_memory"], self.least_gpu_memory or devices["gpu_memory"])

    def machines(self) -> Iterator[Machine]:
        """Yield all nodes there ever were, each with the most it ever offered."""
        for name, node in self._first.items():
            most, labels = self._most[name], node.metadata.labels
            yield Machine(
                name=name,
                cpu=most.get(CPU_NAME, 0),
                memory=most.get(MEMORY_NAME, 0) // MEBIBYTE,
                gpus=most.get(GPU_NAME, 0),
                model=labels.get(MODEL, ""),
                labels={key: text for key, text in labels.items() if key != MODEL},
                others={resource: amount for resource, amount in most.items() if resource not in _COUNTED},
            )

    def outages(self) -> tuple[Outage, ...]:
        """Return when nodes were missing."""
        return tuple(self._missing)

    def closures(self) -> tuple[Outage, ...]:
        """Return when nodes took no new pods."""
        return tuple(self._closed)


def _as_scheduled_on(node: Node) -> Node:
    """Return what of a node decides who may run on it while it is open."""
    metadata = node.metadata
    return Node(
        metadata=Metadata(name=metadata.name, labels={HOSTNAME: metadata.name, **metadata.labels}),
        spec=NodeSpec(taints=node.spec.taints),
        status=NodeStatus(allocatable=node.status.allocatable),
    )


def _is_closed(node: Node) -> bool:
    """Tell whether a node is cordoned, or says that it is not ready."""
    ready = (each.status == "True" for each in node.status.conditions if each.type == "Ready")
    return node.spec.unschedulable or not all(ready)


class _Stretches:
    """From when to when machines were in a state. Mutable."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}
        self._over: list[Outage] = []

    def begin(self, name: str, at: float) -> None:
        self._since.setdefault(name, at)

    def end(self, name: str, at: float) -> None:
        since = self._since.pop(name, at)
        if since < at:
            self._over.append(Outage(name, since, at))

    def __iter__(self) -> Iterator[Outage]:
        yield from self._over
        yield from (Outage(name, since) for name, since in self._since.items())

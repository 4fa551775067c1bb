"""The cluster as the schedulers know it, kept up to date by watch events.

:class:`ClusterState` turns node and pod events into changes of the ledger, in place and in constant time each. A
session forks it: a copy of small arrays, whatever the number of pods. Pods that a scheduler has decided to bind are
*assumed* on their node until the API server confirms it, so that nothing is given away twice in between; all schedulers
of a process share one state for the same reason.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import structlog
from msgspec import structs

from spinney.api.core import Node, Pod
from spinney.cluster.classes import RequestClasses
from spinney.cluster.filters.view import ClusterView
from spinney.cluster.ledger import Ledger
from spinney.cluster.pods import PodIndex, PodKey, PodRecord, record_of
from spinney.cluster.resources import ResourceAxis
from spinney.cluster.statuses import ACTIVE_USED, PodStatus
from spinney.cluster.table import Holding, NodeTable

log = structlog.get_logger()


class PodChange(NamedTuple):
    """A pod as it was and as it is; ``None`` for one that did not exist, or exists no longer."""

    old: PodRecord | None
    new: PodRecord | None


@dataclass(frozen=True, slots=True)
class Assumption:
    """A decision that the API server has not confirmed yet."""

    node: str
    gpu_groups: tuple[str, ...]
    uid: str


_HOLDING: Final = frozenset({PodStatus.BINDING, PodStatus.BOUND, PodStatus.RUNNING})
"""Statuses of pods that hold what they use, and go on doing so."""


class UnknownPod(LookupError):
    """A pod that the state does not hold."""

    def __init__(self, key: PodKey) -> None:
        super().__init__(f"pod {key} is not known: it was deleted, or its watch event has not arrived yet")
        self.key = key


class ClusterState:
    """Nodes, pods and the ledger over them. Mutable; one writer (the event loop), forked for readers."""

    def __init__(self, axis: ResourceAxis | None = None) -> None:
        self.axis = axis if axis is not None else ResourceAxis()
        self.classes = RequestClasses(self.axis)
        self.table = NodeTable(self.axis)
        self.ledger = Ledger(self.table)
        self.on_node = PodIndex()
        self.view = ClusterView(self.table)
        self.rule_carriers = 0
        """How many placed pods have rules about where other pods go."""
        self.arrivals = 0
        """How often a pod came to a node, by any scheduler's decision; see :meth:`assume`."""
        self._pods: dict[PodKey, PodRecord] = {}
        self._releasing: dict[PodKey, PodRecord] = {}
        self._asking: dict[str, dict[PodKey, PodRecord]] = {}
        """Pods by the resources they ask for that no node offers."""
        self._waiting: dict[str, dict[PodKey, PodRecord]] = {}
        self._assumed: dict[PodKey, Assumption] = {}
        self._unread: dict[PodKey, str] = {}
        self._closed: dict[str, Node] = {}
        """Nodes with a pod that cannot be read, as they would be without it."""
        self._listeners: list[Callable[[PodChange], None]] = []

    def pods(self) -> Iterator[PodRecord]:
        """Return every pod, oldest event first."""
        return iter(self._pods.values())

    @property
    def has_stranded_pods(self) -> bool:
        """Tell whether a pod is on a node that is not there."""
        return bool(self._waiting)

    def releasing(self) -> Iterator[PodRecord]:
        """Return the pods that are terminating on a node."""
        return iter(self._releasing.values())

    def pod(self, key: PodKey) -> PodRecord | None:
        """Return one pod if it is known."""
        return self._pods.get(key)

    def has_rules_about(self, record: PodRecord) -> bool:
        """Tell whether a placed pod has rules about where this one goes."""
        return bool(self.rule_carriers) and self.view.have_rules_about(record.namespace, record.labels)

    def subscribe(self, listener: Callable[[PodChange], None]) -> Callable[[], None]:
        """Have ``listener`` called after each change of a pod, until what is returned is called."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    # -- nodes -------------------------------------------------------------------------------------------------------

    def apply_node(self, node: Node) -> None:
        """Take in a node that appeared or changed."""
        name = node.metadata.name
        if name in self._unread.values():
            self._closed[name] = node
            node = structs.replace(node, spec=structs.replace(node.spec, unschedulable=True))
        new = name not in self.table
        row = self.table.find(name)
        here = self.on_node.of_row(row).values() if row is not None else ()
        sharers = [record for record in here if record.request.share is not None]
        offered = [resource for resource in node.status.allocatable if self.axis.find(resource) is None]
        # A new size of device memory changes what shares of it weigh, so they are booked anew.
        for record in sharers:
            self._unbook(record)
        self.table.put(node)
        for record in sharers:
            self._book(record)
        if new:
            for record in self._waiting.pop(name, {}).values():
                self._book(record)
        if offered:  # once all that is on the node is booked, as it was known so far
            self._first_offered(name, offered)

    def delete_node(self, name: str) -> None:
        """Take out a node; pods that are still on it wait for it to come back, or to be deleted."""
        self._closed.pop(name, None)
        row = self.table.find(name)
        if row is None:
            return
        stranded = dict(self.on_node.of_row(row))
        for key, record in stranded.items():
            self.view.pods.remove(key)
            self.rule_carriers -= record.request.carries_rules
        self.on_node.drop_row(row)
        self.ledger.shared.drop_row(row)
        self.table.remove(name)
        if stranded:
            self._waiting[name] = stranded

    # -- pods --------------------------------------------------------------------------------------------------------

    def apply_pod(self, pod: Pod) -> PodRecord:
        """Take in a pod that appeared or changed; return its record."""
        record = record_of(pod, self.classes)
        assumed = self._assumed.get(record.key)
        if assumed is not None:
            record = self._reconcile(record, assumed)
        old = self._pods.get(record.key)
        self._replace(old, record)
        self.arrivals += bool(record.node) and (old is None or old.node != record.node)
        self._open_again(record.key)
        return record

    def delete_pod(self, key: PodKey) -> None:
        """Take out a pod and what it held."""
        self._assumed.pop(key, None)
        old = self._pods.get(key)
        if old is not None:
            self._replace(old, None)
        self._open_again(key)

    def leave_unread(self, key: PodKey, pod: Pod) -> None:
        """Note a pod that cannot be read: what it takes of its node is not known, so the node takes no other pod."""
        node = pod.spec.node_name
        if not node or pod.terminal:
            return
        self._unread[key] = node
        row = self.table.find(node)
        found = self.table.nodes[row] if row is not None else None
        if found is not None:
            self.apply_node(self._closed.get(node, found))

    def _open_again(self, key: PodKey) -> None:
        """Have a node take pods again once all pods on it are read, or gone."""
        node = self._unread.pop(key, None)
        if node is not None and node not in self._unread.values() and node in self._closed:
            self.apply_node(self._closed.pop(node))

    def assume(self, key: PodKey, node: str, gpu_groups: Sequence[str] = (), *, arriving: bool = True) -> None:
        """Count a pod as being bound to ``node`` until the API server says so or :meth:`forget` is called.

        It counts as ``arriving`` unless the caller has reckoned with it in all it decided.
        """
        self.arrivals += arriving
        old = self._pods.get(key)
        if old is None:
            raise UnknownPod(key)
        self._assumed[key] = Assumption(node, tuple(gpu_groups), old.uid)
        self._replace(old, self._reconcile(old, self._assumed[key]))

    def forget(self, key: PodKey) -> None:
        """Drop an assumption: the bind failed, and the pod is pending again."""
        assumed = self._assumed.pop(key, None)
        old = self._pods.get(key)
        if assumed is not None and old is not None and old.status is PodStatus.BINDING:
            changes = {"status": PodStatus.PENDING, "node": "", "gpu_groups": ()}
            self._replace(old, structs.replace(old, **changes))

    # -- booking -----------------------------------------------------------------------------------------------------

    def _reconcile(self, record: PodRecord, assumed: Assumption) -> PodRecord:
        if record.uid != assumed.uid or record.status is not PodStatus.PENDING:
            del self._assumed[record.key]
            return record
        changes = {"status": PodStatus.BINDING, "node": assumed.node, "gpu_groups": assumed.gpu_groups}
        return structs.replace(record, **changes)

    def _replace(self, old: PodRecord | None, new: PodRecord | None) -> None:
        if (old is not None and old.request.unoffered) or (new is not None and new.request.unoffered):
            self._note_unoffered(old, new)
        row = self._row_kept(old, new) if old is not None and new is not None else None
        if old is not None and row is None:
            self._unbook(old)
            self._releasing.pop(old.key, None)
        if new is not None and row is not None:
            self._pods[new.key] = new
            self.on_node.add(row, new)
            self.view.pods.renew(new.pod)
        elif new is not None:
            self._pods[new.key] = new
            self._book(new)
            if new.status is PodStatus.RELEASING:
                self._releasing[new.key] = new
        elif old is not None:
            del self._pods[old.key]
        change = PodChange(old, new)
        for listener in self._listeners:
            listener(change)

    def _note_unoffered(self, old: PodRecord | None, new: PodRecord | None) -> None:
        if old is not None:
            for resource in old.request.unoffered:
                asking = self._asking.get(resource, {})
                asking.pop(old.key, None)
                if not asking:
                    self._asking.pop(resource, None)
        if new is not None:
            for resource in new.request.unoffered:
                self._asking.setdefault(resource, {})[new.key] = new

    def _book(self, record: PodRecord) -> None:
        if record.status not in ACTIVE_USED:
            return
        row = self.table.find(record.node)
        if row is None:
            self._waiting.setdefault(record.node, {})[record.key] = record
            return
        self.ledger.add(row, record.request, holding_of(record.status), record.gpu_groups)
        self.on_node.add(row, record)
        self.view.pods.place(record.pod, row, record.request)
        self.rule_carriers += record.request.carries_rules

    def _unbook(self, record: PodRecord) -> None:
        if record.status not in ACTIVE_USED:
            return
        row = self.table.find(record.node)
        if row is None:
            stranded = self._waiting.get(record.node, {})
            stranded.pop(record.key, None)
            if not stranded:
                self._waiting.pop(record.node, None)
            return
        self.ledger.remove(row, record.request, holding_of(record.status), record.gpu_groups)
        self.on_node.remove(row, record.key)
        self.view.pods.remove(record.key)
        self.rule_carriers -= record.request.carries_rules

    def _first_offered(self, node: str, resources: Sequence[str]) -> None:
        """Count what pods ask for of resources that have a column from now on."""
        beyond = [resource for resource in resources if self.axis.find(resource) is None]
        if beyond:
            log.warning(
                "resources of a node are not counted: too many", node=node, resources=beyond[:8], of=len(beyond)
            )
        for resource in resources:
            if self.axis.find(resource) is not None:
                for record in list(self._asking.pop(resource, {}).values()):
                    request = self.classes.of(record.pod)
                    self._replace(record, structs.replace(record, request=request))

    def _row_kept(self, old: PodRecord, new: PodRecord) -> int | None:
        """Return the row of a pod that goes on holding there what it held, as after our own bind; else ``None``."""
        if old.status not in _HOLDING or new.status not in _HOLDING or old.node != new.node or old.uid != new.uid:
            return None
        if old.request is not new.request or old.gpu_groups != new.gpu_groups or old.labels != new.labels:
            return None
        return self.table.find(new.node)


def holding_of(status: PodStatus) -> Holding:
    """Return how a pod of ``status`` holds what it uses."""
    if status is PodStatus.RELEASING:
        return Holding.RELEASING
    if status is PodStatus.PIPELINED:
        return Holding.PIPELINED
    return Holding.ACTIVE

"""Watch events into the ledger, the groups and the queue, and what each may mean for pods that wait.

A pod enters the queue when it wants a node and names a scheduler that is served here; it leaves when it has a node, has
ended or is gone. Every change that may help a rejected pod is passed on as a cluster event; the plugins that rejected
it say whether it does.
"""

from collections.abc import Callable, Mapping
from typing import Any

from spinney.api.core import NODE, POD, Node, Pod
from spinney.api.labels import COSCHEDULING_GROUP
from spinney.api.resource import Resource
from spinney.coscheduling.cycle.queue import SchedulingQueue
from spinney.coscheduling.feasibility.ranking import NodeRanking
from spinney.coscheduling.framework import Action, ClusterEvent, Services, room_freed
from spinney.coscheduling.framework.events import was_resized
from spinney.gangs.intake import ClusterIntake
from spinney.kube.cache import Change
from spinney.kube.keys import Key


class CoschedulingIntake:
    """Takes in what happens in the cluster. Mutable parts are those it was given."""

    def __init__(
        self,
        shared: ClusterIntake,
        services: Services,
        queue: SchedulingQueue,
        rankings: Mapping[str, NodeRanking],
        *,
        gone: Callable[[Key], None],
    ) -> None:
        self._shared = shared
        self._cluster = services.cluster
        self._groups = services.groups
        self._queue = queue
        self._waiting = services.waiting
        self._nominations = services.nominations
        self._leaving = services.leaving
        self._rankings = rankings
        self._gone = gone

    # -- pods --------------------------------------------------------------------------------------------------------

    def pod(self, change: Change[Pod]) -> None:
        old, new, key = change.old, change.new, change.key
        wants = new is not None and self._wants_node(new)
        if old is not None and new is not None and _label(old) != _label(new):
            # While its old group still has it, so that this group is told that it lost a waiting member.
            waiting = self._waiting.get(key)
            if waiting is not None:
                waiting.reject("Coscheduling", f"the pod left pod group {_label(old)}")
        if not wants:
            # While the ledger still has it, so that its group is told that it lost a waiting member.
            self._dequeue(key, gone=new is None)
        self.take_in(change)
        if new is None:
            self._leaving.pop(key, None)
        elif wants:
            self._enqueue(key, old, new)
        self._tell(old, new)

    def _wants_node(self, pod: Pod) -> bool:
        return (
            not pod.spec.node_name
            and pod.spec.scheduler_name in self._rankings
            and pod.metadata.deletion_timestamp is None
            and not pod.terminal
        )

    def _enqueue(self, key: Key, old: Pod | None, new: Pod) -> None:
        if new.status.nominated_node_name and not self._nominations.node_of(key):
            record = self._cluster.pod(key)
            if record is not None and old is None:
                self._nominations.put(record, new.status.nominated_node_name)  # promised before a restart
        if old is None:
            self._queue.add(new)
        else:
            self._queue.update(new)

    def _dequeue(self, key: Key, *, gone: bool) -> None:
        waiting = self._waiting.get(key)
        self._queue.delete(key)
        record, promised = self._cluster.pod(key), self._nominations.node_of(key)
        if self._nominations.remove(key) and record is not None:
            self._queue.notify(room_freed(record.pod, promised))
        if waiting is not None:
            waiting.reject("SchedulingGates", "the pod is gone, ended or bound by another scheduler")
        if gone:
            self._gone(key)

    def _tell(self, old: Pod | None, new: Pod | None) -> None:
        """Pass on what may help others: a pod that left its node, came to one, or changed there."""
        was_placed = old is not None and bool(old.spec.node_name) and not old.terminal
        is_placed = new is not None and bool(new.spec.node_name) and not new.terminal
        if was_placed and not is_placed:
            self._queue.notify(ClusterEvent(POD, Action.DELETE, old, new))
        elif is_placed and not was_placed:
            self._queue.notify(ClusterEvent(POD, Action.ADD, old, new))
        elif is_placed and old is not None and new is not None:
            event = ClusterEvent(POD, Action.UPDATE, old, new)
            if old.metadata.labels != new.metadata.labels or was_resized(new, event):
                self._queue.notify(event)

    # -- nodes -------------------------------------------------------------------------------------------------------

    def node(self, change: Change[Node]) -> None:
        """Take in a node; pods that wait at Permit for it lose it if it no longer suits them."""
        old, new = change.old, change.new
        self.take_in(change)
        action = Action.DELETE if new is None else Action.ADD if old is None else Action.UPDATE
        if old is not None and new is not None and _aspects(old) == _aspects(new):
            return
        if old is not None and (new is None or old.metadata.labels != new.metadata.labels):
            self._groups.forget_domains()
        self._recheck(change.key.name)
        self._queue.notify(ClusterEvent(NODE, action, old, new))

    def _recheck(self, node: str) -> None:
        row = self._cluster.table.find(node)
        for waiting in self._waiting:
            if waiting.node != node:
                continue
            if row is None:
                waiting.reject("NodeResourcesFit", f"node {node} is gone")
                continue
            record = self._cluster.pod(waiting.key)
            if record is None:
                continue
            objection = self._rankings[record.pod.spec.scheduler_name].objection(record, row)
            if objection is not None:
                waiting.reject(objection.filter, objection.reason)

    # -- groups, and what constraints refer to -------------------------------------------------------------------------

    def constraint(self, resource: Resource, change: Change[Any]) -> None:
        """Take in what pods refer to: a namespace, a volume, a claim, a device, or a class of these."""
        self.take_in(change)
        self._queue.notify(ClusterEvent(resource, Action.UPDATE, change.old, change.new))

    def take_in(self, change: Change[Any]) -> None:
        """Take in any object: of a PodGroup, a composite, a Workload or a disruption budget that is all."""
        if change.new is not None:
            self._shared.apply(change.new)
        elif change.old is not None:
            self._shared.delete(change.old)


def _label(pod: Pod) -> str:
    """Return the group a pod joins by its label, the one way that may change while it lives."""
    return pod.metadata.labels.get(COSCHEDULING_GROUP, "")


def _aspects(node: Node) -> tuple[Any, ...]:
    """Return what decides about pods: everything but the heartbeat."""
    return node.metadata.uid, node.metadata.labels, node.spec, node.status.allocatable, node.status.images

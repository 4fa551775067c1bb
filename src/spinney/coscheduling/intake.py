"""Watch events into the ledger, the groups and the queue, and what each may mean for pods that wait.

A pod enters the queue when it wants a node and names a scheduler that is served here; it leaves when it has a node, has
ended or is gone. Every change that may help a rejected pod is passed on as a cluster event; the plugins that rejected
it say whether it does.
"""

from collections.abc import Callable, Mapping
from typing import Any

from spinney.api import coscheduling, workload_v1alpha1
from spinney.api.core import NAMESPACE, NODE, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, POD, Node, Pod
from spinney.api.labels import COSCHEDULING_GROUP
from spinney.api.policy import PodDisruptionBudget
from spinney.api.resource import Resource
from spinney.api.resource_claims import DeviceClass, ResourceClaim, ResourceSlice
from spinney.api.storage import STORAGE_CLASS, PersistentVolume, PersistentVolumeClaim, StorageClass
from spinney.cluster.filters import Storage
from spinney.cluster.pods import PodKey
from spinney.coscheduling.composites import Composite, NativeGroup, NativeGroups
from spinney.coscheduling.framework import Action, ClusterEvent, Services, room_freed
from spinney.coscheduling.framework.events import was_resized
from spinney.coscheduling.group import Terms
from spinney.coscheduling.judging import Judge
from spinney.coscheduling.queue import SchedulingQueue
from spinney.gangs.sources import coscheduling as coscheduling_source
from spinney.gangs.sources import native
from spinney.gangs.sources.context import SourceContext
from spinney.gangs.tree import GangKey
from spinney.kube.cache import Change
from spinney.kube.keys import Key


class Intake:
    """Takes in what happens in the cluster. Mutable parts are those it was given."""

    def __init__(
        self,
        services: Services,
        queue: SchedulingQueue,
        judges: Mapping[str, Judge],
        *,
        gone: Callable[[Key], None],
    ) -> None:
        self._cluster = services.cluster
        self._groups = services.groups
        self._queue = queue
        self._waiting = services.waiting
        self._nominations = services.nominations
        self._budgets = services.budgets
        self._leaving = services.leaving
        self._judges = judges
        self._gone = gone
        self._context = SourceContext()
        self._native = NativeGroups(self._groups, self._context)
        self._workloads: dict[Key, workload_v1alpha1.Workload] = {}
        self._namespaces: dict[str, Any] = {}
        self._claims: dict[tuple[str, str], PersistentVolumeClaim] = {}
        self._volumes = services.volumes
        self._devices = services.claims
        self._classes: dict[str, StorageClass] = {}
        self._cluster.view.namespaces = self._namespaces
        self._cluster.view.storage = Storage(self._claims, self._volumes, self._classes)

    # -- pods --------------------------------------------------------------------------------------------------------

    def pod(self, change: Change[Pod]) -> None:
        """Take in a pod."""
        old, new, key = change.old, change.new, change.key
        wants = new is not None and self._wants_node(new)
        if old is not None and new is not None and _label(old) != _label(new):
            # While its old group still has it, so that this group hears that a waiting member is lost.
            waiting = self._waiting.get(key)
            if waiting is not None:
                waiting.reject("Coscheduling", f"the pod left pod group {_label(old)}")
        if not wants:
            # While the ledger still has it, so that its group hears that a waiting member is lost.
            self._dequeue(key, gone=new is None)
        if new is None:
            self._cluster.delete_pod(PodKey(*key))
            self._leaving.pop(PodKey(*key), None)
        else:
            known = self._cluster.pod(PodKey(*key))
            # Another scheduler of the process may have fed the same ledger with the same event already.
            if known is None or known.pod is not new:
                self._cluster.apply_pod(new)
                self._derive_workload(PodKey(*key))
        if new is not None and wants:
            self._enqueue(key, old, new)
        self._tell(old, new)

    def _wants_node(self, pod: Pod) -> bool:
        return (
            not pod.spec.node_name
            and pod.spec.scheduler_name in self._judges
            and pod.metadata.deletion_timestamp is None
            and not pod.terminal
        )

    def _enqueue(self, key: Key, old: Pod | None, new: Pod) -> None:
        if new.status.nominated_node_name and not self._nominations.node_of(key):
            record = self._cluster.pod(PodKey(*key))
            if record is not None and old is None:
                self._nominations.put(record, new.status.nominated_node_name)  # promised before a restart
        if old is None:
            self._queue.add(new)
        else:
            self._queue.update(new)

    def _dequeue(self, key: Key, *, gone: bool) -> None:
        waiting = self._waiting.get(key)
        self._queue.delete(key)
        record, promised = self._cluster.pod(PodKey(*key)), self._nominations.node_of(key)
        if self._nominations.remove(key) and record is not None:
            self._queue.notify(room_freed(record.pod, promised))
        if waiting is not None:
            waiting.reject("SchedulingGates", "the pod is gone, ended or bound by somebody else")
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
        if new is None:
            self._cluster.delete_node(change.key.name)
            action = Action.DELETE
        else:
            self._cluster.apply_node(new)
            action = Action.ADD if old is None else Action.UPDATE
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
            record = self._cluster.pod(PodKey(*waiting.key))
            if record is None:
                continue
            objection = self._judges[record.pod.spec.scheduler_name].objection(record, row)
            if objection is not None:
                waiting.reject(objection.filter, objection.reason)

    # -- groups ------------------------------------------------------------------------------------------------------

    def pod_group(self, change: Change[coscheduling.PodGroup]) -> None:
        """Take in a PodGroup of scheduler-plugins."""
        if change.new is None:
            self._groups.remove(GangKey(coscheduling_source.SOURCE, *change.key))
            return
        spec = change.new.spec
        terms = Terms(min_resources=spec.min_resources, timeout=spec.schedule_timeout_seconds)
        self._groups.put(coscheduling_source.gang(change.new, self._context), terms)

    def native_group(self, change: Change[NativeGroup]) -> None:
        """Take in a PodGroup of Kubernetes."""
        self._native.put_group(change.key, change.new)

    def composite(self, change: Change[Composite]) -> None:
        """Take in a composite of PodGroups."""
        self._native.put_composite(change.key, change.new)

    def workload(self, change: Change[workload_v1alpha1.Workload]) -> None:
        """Take in a Workload of Kubernetes 1.35: each of its groups, per replica key that pods name."""
        if change.new is None:
            self._workloads.pop(change.key, None)
        else:
            self._workloads[change.key] = change.new
        for group in list(self._groups):
            if group.key.source == native.WORKLOAD_SOURCE and native.workload_of(group.key) == change.key:
                self._derive(group.key)

    def _derive_workload(self, pod: PodKey) -> None:
        group = self._groups.of(pod)
        if group is not None and group.gang is None and group.key.source == native.WORKLOAD_SOURCE:
            self._derive(group.key)

    def _derive(self, key: GangKey) -> None:
        workload = self._workloads.get(Key(*native.workload_of(key)))
        gang = native.workload_gang(workload, key, self._context) if workload is not None else None
        if gang is None:
            self._groups.remove(key)
        else:
            self._groups.put(gang)

    # -- what constraints refer to -----------------------------------------------------------------------------------

    def budget(self, change: Change[PodDisruptionBudget]) -> None:
        """Take in a disruption budget."""
        if change.new is None:
            self._budgets.remove(change.key)
        else:
            self._budgets.put(change.new)

    def namespace(self, change: Change[Any]) -> None:
        """Take in a namespace, whose labels affinity may select."""
        _keep(self._namespaces, change.key.name, change.new and change.new.metadata.labels)
        self._queue.notify(ClusterEvent(NAMESPACE, Action.UPDATE, change.old, change.new))

    def claim(self, change: Change[PersistentVolumeClaim]) -> None:
        """Take in a persistent volume claim."""
        _keep(self._claims, (change.key.namespace, change.key.name), change.new)
        self._queue.notify(ClusterEvent(PERSISTENT_VOLUME_CLAIM, Action.UPDATE, change.old, change.new))

    def volume(self, change: Change[PersistentVolume]) -> None:
        """Take in a persistent volume."""
        self._volumes.put(change.key.name, change.new)
        self._queue.notify(ClusterEvent(PERSISTENT_VOLUME, Action.UPDATE, change.old, change.new))

    def devices(self, resource: Resource, change: Change[ResourceClaim | ResourceSlice | DeviceClass]) -> None:
        """Take in a device claim, what a driver publishes, or a class of devices."""
        if change.new is not None:
            self._devices.apply(change.new)
        elif change.old is not None:
            self._devices.delete(change.old)
        self._queue.notify(ClusterEvent(resource, Action.UPDATE, change.old, change.new))

    def storage_class(self, change: Change[StorageClass]) -> None:
        """Take in a storage class."""
        _keep(self._classes, change.key.name, change.new)
        self._queue.notify(ClusterEvent(STORAGE_CLASS, Action.UPDATE, change.old, change.new))


def _keep(book: dict[Any, Any], key: object, value: object) -> None:
    if value is None:
        book.pop(key, None)
    else:
        book[key] = value


def _label(pod: Pod) -> str:
    """Return the group a pod joins by its label, the one way that may change while it lives."""
    return pod.metadata.labels.get(COSCHEDULING_GROUP, "")


def _aspects(node: Node) -> tuple[Any, ...]:
    """Return what decides about pods: everything but the heartbeat."""
    return node.metadata.uid, node.metadata.labels, node.spec, node.status.allocatable, node.status.images

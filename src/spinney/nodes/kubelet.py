"""The kubelets of a fleet: one watch of bound pods, one queue, and the writes that the pure decisions ask for.

What a pod does next is decided by :func:`~spinney.nodes.lifecycle.advance`, whether a node takes it by
:func:`~spinney.nodes.admission.admit`. Here is the rest: the ledger of each node, who waits for whom, and the API
server. A node gives back what a pod used at the very event that ends or deletes the pod, before any later event is
looked at: events come in the order of their writes, so a pod that a scheduler placed on freed capacity always fits.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime

import structlog

from spinney.api.affinity import Taint
from spinney.api.core import NODE, POD
from spinney.kube.cache import Change, WatchCache
from spinney.kube.client import Client, PatchKind
from spinney.kube.controller import Controller, Requeue
from spinney.kube.errors import NotFound
from spinney.kube.keys import Key
from spinney.kube.reconciling import Unread, unless_gone
from spinney.nodes.admission import NODE_AFFINITY, Rejection, admit
from spinney.nodes.behaviour import InvalidAnnotation, behaviour_of
from spinney.nodes.lifecycle import PodStage, adopt, advance, begin, lose_touch
from spinney.nodes.node import Addresses, SimulatedNode, Tenant, failure_taint
from spinney.nodes.pods import BoundPod, Clique, evicted_at, pod_requests
from spinney.nodes.spec import PodTimes
from spinney.nodes.startup import InvalidStartup, Parent, is_startup, parents
from spinney.nodes.status import rejected_patch, running_patch, stopped_patch, unready_patch
from spinney.runtime import Runtime

log = structlog.get_logger()

_READY_BY_CLIQUE = "ready by clique"
_WORKERS = 16
_BY_NODE = "by node"
_SOONEST = 0.001  # seconds; a wake-up computed in microseconds may come a hair early


class Kubelets:
    """Runs the pods bound to the nodes of ``nodes``. Mutable; pods on other nodes are left alone."""

    def __init__(
        self,
        client: Client,
        nodes: Mapping[str, SimulatedNode],
        times: PodTimes,
        runtime: Runtime,
    ) -> None:
        self._client = client
        self._nodes = nodes
        self._times = times
        self._runtime = runtime
        self._addresses = Addresses()
        self._scrapped: set[str] = set()
        self._waiting: dict[Clique, dict[Key, int]] = {}  # who waits for how many ready pods of a clique
        self.pods: WatchCache[BoundPod] = WatchCache(
            client,
            POD,
            BoundPod,
            runtime=runtime,
            field_selector="spec.nodeName!=",
            indexes={_BY_NODE: lambda pod: (pod.spec.node_name,), _READY_BY_CLIQUE: _ready_clique},
        )
        self.pods.subscribe(self._observe)
        self.controller = Controller("kubelets", self._reconcile, runtime=runtime, workers=_WORKERS)
        self.controller.watch(self.pods)
        self.controller.watch(self.pods, self._woken_by)

    def pods_on(self, node: str) -> list[BoundPod]:
        """Return the pods bound to a node, in key order."""
        return self.pods.index(_BY_NODE, node)

    def look_again(self, node: str) -> None:
        """Have every pod of a node looked at, because the node has changed."""
        for key in self.pods.index_keys(_BY_NODE, node):
            self.controller.enqueue(key)

    def vacate(self, node: SimulatedNode) -> None:
        """Have the pods of a node that is gone for good wait for nobody any more; one that is bound there goes, too."""
        for key, tenant in node.tenants.items():
            self._wait_for(key, tenant, ())
        self._scrapped.add(node.name)
        self.look_again(node.name)

    async def delete_at_once(self, pod: BoundPod) -> None:
        """Delete a pod without giving it time."""
        await self._delete(pod, grace_period_seconds=0)

    # -- what events change -------------------------------------------------------------------------------------------

    def _observe(self, change: Change[BoundPod]) -> None:
        """Keep the ledgers right: a pod that is gone, ended or replaced uses nothing."""
        old, new = change.old, change.new
        if new is not None and new.status.pod_ip:
            self._addresses.skip_past(new.status.pod_ip)
        if old is None or (new is not None and not new.terminal):
            return
        node = self._nodes.get(old.spec.node_name)
        tenant = node.release(change.key) if node is not None else None
        if tenant is not None:
            self._wait_for(change.key, tenant, ())

    def _woken_by(self, change: Change[BoundPod]) -> Iterable[Key]:
        """Return the pods whose start-up condition the changed pod meets by being ready."""
        woken: list[Key] = []
        for clique in _ready_clique(change.new) if change.new is not None else ():
            if waiting := self._waiting.get(clique):
                ready = self._ready_pods(clique)
                woken += sorted(key for key, minimum in waiting.items() if minimum <= ready)
        return woken

    # -- what is done about one pod -----------------------------------------------------------------------------------

    async def _reconcile(self, key: Key) -> Requeue | None:
        pod = self.pods.get(key)
        node = self._nodes.get(pod.spec.node_name) if pod is not None else None
        if pod is not None and node is None and pod.spec.node_name in self._scrapped:
            # A scheduler that did not know yet has bound it; a cluster's pod garbage collection takes it away.
            await self.delete_at_once(pod)
            return None
        if pod is None or node is None:
            return None
        if (taint := failure_taint(node)) is not None:
            return await self._stand_by(key, pod, node, taint)
        if pod.terminal:
            if pod.metadata.deletion_timestamp is not None:
                await self._remove(key, pod)
            return None
        tenant = node.tenants.get(key)
        if tenant is None:
            arrival = self._arrive(key, pod, node)
            if isinstance(arrival, Rejection) and arrival.reason == NODE_AFFINITY:
                await self._look_at_labels(node)
                arrival = self._arrive(key, pod, node)
            if isinstance(arrival, Rejection):
                log.info("pod rejected", pod=str(key), node=node.name, reason=arrival.reason)
                await self._write(key, rejected_patch(pod, arrival, now=self._runtime.clock.now()))
                return None
            tenant = arrival
        decision = advance(pod, tenant.run, now=self._runtime.clock.now(), ready_pods=self._ready_pods)
        tenant.run = decision.run
        self._wait_for(key, tenant, decision.waits)
        if decision.remove:
            await self._remove(key, pod)
            return None
        await self._report(key, pod, tenant, host_ip=node.ip)
        return self._at(decision.wake)

    async def _stand_by(self, key: Key, pod: BoundPod, node: SimulatedNode, taint: Taint) -> Requeue | None:
        """Do for a pod of a failed node what the cluster does: call it unready, and delete it in time."""
        now = self._runtime.clock.now()
        if pod.is_true("Ready"):
            await self._write(key, unready_patch(pod, now=now))
            if (tenant := node.tenants.get(key)) is not None:
                tenant.run = lose_touch(tenant.run, now=now)
                tenant.reported = tenant.run.appearance
        leaves = evicted_at(pod, taint, since=node.since or now)
        if pod.terminal or pod.metadata.deletion_timestamp is not None or leaves is None or leaves > now:
            return self._at(leaves if leaves is not None and leaves > now else None)
        log.info("pod evicted from a failed node", pod=str(key), node=node.name)
        await self._delete(pod)
        return None

    def _at(self, moment: datetime | None) -> Requeue | None:
        if moment is None:
            return None
        return Requeue(max(_SOONEST, (moment - self._runtime.clock.now()).total_seconds()))

    def _arrive(self, key: Key, pod: BoundPod, node: SimulatedNode) -> Tenant | Rejection:
        """Take a pod that is new here, or say why not."""
        now = self._runtime.clock.now()
        try:
            behaviour = behaviour_of(pod.metadata.annotations, self._times, self._runtime.random)
            for container in filter(is_startup, pod.spec.init_containers):
                parents(pod, container)
        except (InvalidAnnotation, InvalidStartup) as fault:
            return Rejection("UnexpectedAdmissionError", str(fault))
        wanted = pod_requests(pod)
        if pod.status.start_time is not None or pod.metadata.deletion_timestamp is not None:
            run = adopt(pod, behaviour, ip=self._addresses.pod(), now=now)
            tenant = Tenant(wanted, run, reported=run.appearance)
        else:
            rejection = admit(
                pod, wanted, node=node.name, labels=node.labels, allocatable=node.allocatable, used=node.used
            )
            if rejection is not None:
                return rejection
            tenant = Tenant(wanted, begin(behaviour, ip=self._addresses.pod(), now=now))
        node.take(key, tenant)
        return tenant

    async def _look_at_labels(self, node: SimulatedNode) -> None:
        """Read the labels of the Node object, which other clients may change."""
        with suppress(NotFound):
            found = await self._client.get(NODE, node.name)
            node.labels = found["metadata"].get("labels") or {}

    def _wait_for(self, key: Key, tenant: Tenant, waits: tuple[Parent, ...]) -> None:
        """Remember whose readiness wakes this pod."""
        for parent in tenant.waits:
            waiting = self._waiting[parent.clique]
            waiting.pop(key, None)
            if not waiting:
                del self._waiting[parent.clique]
        for parent in waits:
            self._waiting.setdefault(parent.clique, {})[key] = parent.minimum
        tenant.waits = waits

    def _ready_pods(self, clique: Clique) -> int:
        return len(self.pods.index_keys(_READY_BY_CLIQUE, clique))

    async def _report(self, key: Key, pod: BoundPod, tenant: Tenant, *, host_ip: str) -> None:
        """Write what the pod looks like, if that is new. A pod that is being created looks like nothing yet."""
        appearance = tenant.run.appearance
        if tenant.run.stage is PodStage.CREATING or appearance == tenant.reported:
            return
        await self._write(key, running_patch(pod, tenant.run, host_ip=host_ip))
        tenant.reported = appearance

    async def _remove(self, key: Key, pod: BoundPod) -> None:
        """End a pod whose deletion was asked for. A finalizer's owner waits for the end before it lets go."""
        if pod.metadata.finalizers and not pod.terminal:
            await self._write(key, stopped_patch(pod, now=self._runtime.clock.now()))
        if pod.metadata.finalizers and pod.metadata.deletion_grace_period_seconds == 0:
            return  # all that is left is the finalizers' owners' to do
        await self.delete_at_once(pod)

    async def _delete(self, pod: BoundPod, *, grace_period_seconds: int | None = None) -> None:
        metadata = pod.metadata
        deletion = self._client.delete(
            POD, metadata.name, metadata.namespace, grace_period_seconds=grace_period_seconds, uid=metadata.uid
        )
        await unless_gone(deletion)

    async def _write(self, key: Key, patch: dict[str, object]) -> None:
        writing = self._client.patch(
            POD, key.name, patch, key.namespace, kind=PatchKind.STRATEGIC, subresource="status", type=Unread
        )
        await unless_gone(writing)


def _ready_clique(pod: BoundPod) -> tuple[Clique, ...]:
    return (pod.clique,) if pod.clique is not None and pod.is_true("Ready") else ()

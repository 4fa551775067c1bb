"""A fleet of simulated nodes on any API server: registering them, running them, and what happens to nodes in life.

A fleet plays the kubelets' part, and the node lifecycle controller's as far as schedulers can tell: a node that fails
is tainted, and so is seen to fail at once instead of after the grace period of a monitor, and its pods are driven off
when they no longer tolerate that.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from spinney.api.coordination import LEASE
from spinney.api.core import NODE
from spinney.api.struct import JSON
from spinney.kube.client import Client, PatchKind
from spinney.kube.errors import AlreadyExists, Conflict, TooManyRequests
from spinney.kube.keys import key_of
from spinney.kube.reconciling import unless_gone, write_each
from spinney.kube.retrying import Backoff
from spinney.nodes.heartbeats import LEASE_NAMESPACE, Heart
from spinney.nodes.kubelet import Kubelets
from spinney.nodes.node import (
    SIMULATED_LABEL,
    Health,
    SimulatedNode,
    node_conditions,
    node_ip,
    node_manifest,
    node_status,
    node_taints,
)
from spinney.nodes.pods import BoundPod
from spinney.nodes.spec import ClusterSpec, NodeGroup, NodeSpec
from spinney.runtime import Runtime
from spinney.runtime.tasks import end

log = structlog.get_logger()

_CONCURRENCY = 32  # requests under way while many nodes are registered or removed


class UnknownNode(LookupError):
    """A name that no node of the fleet has."""


class Fleet:
    """The simulated nodes of a cluster. Mutable; used from one event loop.

    A fleet that ``adopts`` runs all simulated nodes that it finds, those of an earlier fleet too: it has to be the only
    one of its cluster.
    """

    def __init__(self, client: Client, spec: ClusterSpec, *, runtime: Runtime, adopts: bool = False) -> None:
        self._client = client
        self._runtime = runtime
        self._nodes: dict[str, SimulatedNode] = {}
        self._initial = spec.expanded()
        self._adopts = adopts
        self._numbered = 0
        self._heart = Heart(client, self._nodes, spec.heartbeats, runtime)
        self._kubelets = Kubelets(client, self._nodes, spec.pods, runtime)
        self._ready = asyncio.Event()

    @property
    def names(self) -> list[str]:
        """Return the names of the nodes, in the order they joined."""
        return list(self._nodes)

    def health(self, name: str) -> Health:
        """Return how a node fares."""
        return self._node(name).health

    def pods_on(self, name: str) -> list[BoundPod]:
        """Return the pods bound to a node, in key order."""
        return self._kubelets.pods_on(self._node(name).name)

    async def run(self) -> None:
        """Register the nodes and run them until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._kubelets.pods.run(), name="nodes: watch of bound pods")
            await self._kubelets.pods.wait_for_sync()
            await self._join(self._initial)
            self._initial = []
            if self._adopts:
                await self._join(await self._left_behind())
            tasks.create_task(self._kubelets.controller.run(), name="nodes: kubelets")
            tasks.create_task(self._heart.run(), name="nodes: heartbeats")
            self._ready.set()

    async def wait_until_ready(self) -> None:
        """Wait until every node of the description is registered and takes pods."""
        await self._ready.wait()

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Fleet"]:
        """Run the fleet for the time of an ``async with`` block, which begins when every node is registered."""
        task = asyncio.create_task(self.run(), name="nodes")
        ready = asyncio.create_task(self.wait_until_ready(), name="nodes: ready")
        try:
            await asyncio.wait({task, ready}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                task.result()
            yield self
        finally:
            await end(task, ready)

    # -- nodes come and go --------------------------------------------------------------------------------------------

    async def add(self, group: NodeGroup) -> list[str]:
        """Register further nodes and return their names."""
        ClusterSpec(nodes=(group,)).check(source="group")
        specs = list(group.nodes())
        await self._join(specs)
        return [spec.name for spec in specs]

    async def remove(self, name: str) -> None:
        """Take a node away for good, with its pods, as a cluster does when a machine is scrapped."""
        node = self._node(name)
        pods = self.pods_on(name)
        del self._nodes[name]
        self._kubelets.vacate(node)
        await unless_gone(self._client.delete(NODE, node.name))
        await unless_gone(self._client.delete(LEASE, node.name, LEASE_NAMESPACE))
        await write_each(pods, self._kubelets.delete_at_once, at_once=_CONCURRENCY)
        log.info("node removed", node=name, pods=len(pods))

    async def _left_behind(self) -> list[NodeSpec]:
        """Return the simulated nodes that an earlier fleet has registered, and this one has not."""
        found = (await self._client.list(NODE, label_selector=f"{SIMULATED_LABEL}=true")).items
        return [
            NodeSpec(
                name=each["metadata"]["name"],
                capacity=each["status"].get("capacity") or {},
                allocatable=each["status"].get("allocatable") or {},
                labels=each["metadata"]["labels"],
            )
            for each in found
            if each["metadata"]["name"] not in self._nodes
        ]

    async def _join(self, specs: list[NodeSpec]) -> None:
        now = self._runtime.clock.now()
        for spec in specs:
            if spec.name in self._nodes:
                raise ValueError(f"the fleet already has a node {spec.name!r}; choose another name")
        nodes = [SimulatedNode(spec, node_ip(self._numbered + n), since=now) for n, spec in enumerate(specs)]
        self._numbered += len(nodes)
        self._nodes.update((node.name, node) for node in nodes)
        await write_each(nodes, self._register, at_once=_CONCURRENCY)
        for node in nodes:
            self._kubelets.look_again(node.name)
        log.info("nodes registered", nodes=len(nodes))

    async def _register(self, node: SimulatedNode) -> None:
        """Create the Node object, or adopt the one that is there, and its lease."""
        now = self._runtime.clock.now()
        manifest = node_manifest(node, now=now)
        try:
            stored = await self._client.create(NODE, manifest)
        except AlreadyExists:
            labels = {"metadata": {"labels": manifest["metadata"]["labels"]}}
            await self._client.patch(NODE, node.name, labels)
            stored = await self._client.patch(
                NODE,
                node.name,
                {"status": node_status(node, now=now)},
                kind=PatchKind.STRATEGIC,
                subresource="status",
            )
        if (stored.get("spec") or {}).get("taints", []) != manifest["spec"]["taints"]:
            await self._write_taints(node)  # an API server taints new nodes as not ready
        await self._heart.create_lease(node)

    # -- nodes fail and recover ---------------------------------------------------------------------------------------

    async def fail(self, name: str, *, health: Health = Health.UNREACHABLE) -> None:
        """Let a node fail: no heartbeats, no progress of its pods, and the cluster is told.

        Its pods are called unready at once, and deleted when they no longer tolerate the node's taint; they then stay,
        terminating, until the node recovers or is removed.
        """
        await self._change_health(self._node(name), health)

    async def recover(self, name: str) -> None:
        """Let a node come back: its pods go on where they are due to be."""
        await self._change_health(self._node(name), Health.READY)

    async def _change_health(self, node: SimulatedNode, health: Health) -> None:
        if node.health is health:
            return
        now = self._runtime.clock.now()
        node.health, node.since = health, now
        patch = {"status": {"conditions": node_conditions(node, now=now)}}
        await self._client.patch(NODE, node.name, patch, kind=PatchKind.STRATEGIC, subresource="status")
        await self._write_taints(node)
        self._kubelets.look_again(node.name)
        log.info("node changed", node=node.name, ready=health.value)

    async def _write_taints(self, node: SimulatedNode) -> None:
        """Make the taints show the node's health; those of other people stay."""
        while True:
            found = await self._client.get(NODE, node.name)
            present: list[JSON] = (found.get("spec") or {}).get("taints") or []
            wanted = node_taints(node, present, now=self._runtime.clock.now())
            if wanted == present:
                return
            metadata = {"resourceVersion": found["metadata"]["resourceVersion"]}
            try:
                await self._client.patch(NODE, node.name, {"metadata": metadata, "spec": {"taints": wanted or None}})
            except Conflict:
                continue
            return

    # -- nodes are emptied --------------------------------------------------------------------------------------------

    async def cordon(self, name: str, *, unschedulable: bool = True) -> None:
        """Mark a node as closed to new pods, or open again."""
        await self._client.patch(NODE, self._node(name).name, {"spec": {"unschedulable": unschedulable or None}})

    async def drain(self, name: str) -> None:
        """Cordon a node and evict its pods; returns when all of them, but those of DaemonSets, are gone.

        A disruption budget that forbids an eviction is asked again until it allows it.
        """
        await self.cordon(name)
        pods = [pod for pod in self.pods_on(name) if not _is_daemon(pod)]
        await write_each(pods, self._evict, at_once=_CONCURRENCY)

    async def _evict(self, pod: BoundPod) -> None:
        """Evict one pod and wait until it is gone."""
        key, uid = key_of(pod), pod.metadata.uid
        gone = asyncio.Event()

        def watch(_change: object) -> None:
            found = self._kubelets.pods.get(key)
            if found is None or found.metadata.uid != uid:
                gone.set()

        unsubscribe = self._kubelets.pods.subscribe(watch)
        try:
            await self._ask_for_eviction(pod)
            watch(None)
            await gone.wait()
        finally:
            unsubscribe()

    async def _ask_for_eviction(self, pod: BoundPod) -> None:
        key = key_of(pod)
        pauses = Backoff(self._runtime.random)
        while True:
            try:
                await unless_gone(self._client.evict(key.namespace, key.name, uid=pod.metadata.uid))
            except TooManyRequests:
                await self._runtime.clock.sleep(pauses.next())
            else:
                return

    def _node(self, name: str) -> SimulatedNode:
        if name not in self._nodes:
            raise UnknownNode(f"no node {name!r} in this fleet of {len(self._nodes)}")
        return self._nodes[name]


def _is_daemon(pod: BoundPod) -> bool:
    return any(owner.kind == "DaemonSet" and owner.controller for owner in pod.metadata.owner_references)

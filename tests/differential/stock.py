"""Asking the stock kube-scheduler: a cluster is written to a real API server, then pods one by one.

A pod is judged before the next is created, and taken away again if it fits nowhere, so both sides always see the same
cluster. What our side sees is read back from the API server: with its defaults, not as the test wrote it.
"""

import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from spinney.api.core import (
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    SERVICE_ACCOUNT,
    Node,
    Pod,
)
from spinney.api.resource import Resource
from spinney.api.storage import STORAGE_CLASS, PersistentVolume, PersistentVolumeClaim, StorageClass
from spinney.api.struct import JSON
from spinney.cluster.filters import ClusterView, Storage
from spinney.cluster.requests import pod_requests
from spinney.cluster.table import Holding, NodeTable
from spinney.kube.client import Client
from spinney.kube.config import load_kubeconfig
from spinney.kube.errors import NotFound
from spinney.runtime import Runtime
from spinney.testing.controlplane import ControlPlane

PROFILE: Final = "stock"
CLUSTERS: Final = int(os.environ.get("SPINNEY_CLUSTERS", "4"))
"""How many random clusters of each kind are compared; more find what is rare."""
_NOT_HELPFUL: Final = re.compile(r"(\d+) Preemption is not helpful for scheduling")


@dataclass(frozen=True)
class Answer:
    """Where kube-scheduler put a pod, or why nowhere."""

    node: str = ""
    message: str = ""

    @property
    def beyond_preemption(self) -> int:
        """Return on how many nodes kube-scheduler says that preemption would not help."""
        found = _NOT_HELPFUL.search(self.message)
        return int(found[1]) if found else 0


class StockScheduler:
    """A real API server whose pods of scheduler ``stock`` are placed by kube-scheduler."""

    def __init__(self, client: Client, namespaces: dict[str, dict[str, str]]) -> None:
        self.client = client
        self.namespaces = namespaces

    @classmethod
    @asynccontextmanager
    async def on(cls, plane: ControlPlane, namespaces: dict[str, dict[str, str]]) -> AsyncIterator["StockScheduler"]:
        """Connect, with ``namespaces`` (name to labels) there and empty; leave nothing behind."""
        runtime = Runtime.system()
        client = Client(load_kubeconfig(plane.kubeconfig, runtime=runtime), runtime)
        stock = cls(client, namespaces)
        try:
            for name, labels in namespaces.items():
                await stock._namespace(name, labels)
            await stock.clear()
            yield stock
            await stock.clear()
        finally:
            await client.transport.close()
            runtime.executor.close()

    async def build(self, nodes: list[JSON], placed: list[JSON], terminating: frozenset[str] = frozenset()) -> None:
        """Create nodes and pods on them, and return when kube-scheduler has seen the nodes."""
        for node in nodes:
            await self.client.create(NODE, node)
        for node in nodes:
            # The API server taints new nodes as not ready; the controller that takes the taint off does not run.
            taints = node["spec"].get("taints", [])
            last = {"metadata": {"labels": {"last": "node"}}} if node is nodes[-1] else {}
            await self.client.patch(NODE, node["metadata"]["name"], {"spec": {"taints": taints}, **last})
        await self.see(
            {
                "metadata": {"name": "probe", "namespace": min(self.namespaces)},
                "spec": {
                    "containers": [{"name": "main", "image": "registry.example/app:1"}],
                    "tolerations": [{"operator": "Exists"}],
                    "nodeSelector": {"last": "node"},
                },
            }
        )
        for pod in placed:
            name = pod["metadata"]["name"]
            held = {"finalizers": ["example.com/held"]} if name in terminating else {}
            await self.client.create(POD, {**pod, "metadata": {**pod["metadata"], **held}})
            if held:
                await self.client.delete(POD, name, pod["metadata"]["namespace"], grace_period_seconds=0)

    async def see(self, probe: JSON) -> None:
        """Return when kube-scheduler has placed ``probe``, which must need what was written last; then delete it.

        It sees objects of one kind in the order they were written, so it has seen the earlier ones too.
        """
        name, namespace = probe["metadata"]["name"], probe["metadata"]["namespace"]
        await self.client.create(POD, {**probe, "spec": {**probe["spec"], "schedulerName": PROFILE}})
        async for event in self.client.watch(POD, namespace, type=Pod, field_selector=f"metadata.name={name}"):
            if event.object.spec.node_name:
                break
        await self.client.delete(POD, name, namespace, grace_period_seconds=0)

    async def view(self) -> ClusterView:
        """Return the cluster as it is, in columns."""
        claims = await self.client.list(PERSISTENT_VOLUME_CLAIM, type=PersistentVolumeClaim)
        volumes = await self.client.list(PERSISTENT_VOLUME, type=PersistentVolume)
        classes = await self.client.list(STORAGE_CLASS, type=StorageClass)
        storage = Storage(
            {(claim.metadata.namespace or "", claim.metadata.name): claim for claim in claims.items},
            {volume.metadata.name: volume for volume in volumes.items},
            {found.metadata.name: found for found in classes.items},
        )
        view = ClusterView(NodeTable(), namespaces=self.namespaces, storage=storage)
        for node in (await self.client.list(NODE, type=Node)).items:
            view.table.put(node)
        for pod in (await self.client.list(POD, type=Pod)).items:
            row = view.table.find(pod.spec.node_name)
            if row is not None:
                view.table.add(row, Holding.ACTIVE, pod_requests(pod, view.table.axis))
                view.pods.place(pod, row)
        return view

    async def submit(self, pod: JSON) -> Pod:
        """Create a pod that kube-scheduler does not see yet: a gate holds it."""
        spec = {**pod["spec"], "schedulerName": PROFILE, "schedulingGates": [{"name": "example.com/wait"}]}
        return await self.client.create(POD, {**pod, "spec": spec}, type=Pod)

    async def answer(self, pod: Pod) -> Answer:
        """Release a submitted pod and return what becomes of it; one that fits nowhere is deleted."""
        namespace, name = pod.metadata.namespace or "", pod.metadata.name
        await self.client.patch(POD, name, {"spec": {"schedulingGates": None}}, namespace)
        answer = await self._outcome(namespace, name)
        if not answer.node:
            await self.client.delete(POD, name, namespace, grace_period_seconds=0)
        return answer

    async def clear(self) -> None:
        """Delete all pods, volumes and nodes."""
        for namespace in self.namespaces:
            for pod in (await self.client.list(POD, namespace, type=Pod)).items:
                if pod.metadata.finalizers:
                    await self.client.patch(POD, pod.metadata.name, {"metadata": {"finalizers": None}}, namespace)
            await self.client.delete_collection(POD, namespace, grace_period_seconds=0)
            for claim in (await self.client.list(PERSISTENT_VOLUME_CLAIM, namespace)).items:
                await self._drop(PERSISTENT_VOLUME_CLAIM, claim, namespace)
        for volume in (await self.client.list(PERSISTENT_VOLUME)).items:
            await self._drop(PERSISTENT_VOLUME, volume, None)
        await self.client.delete_collection(STORAGE_CLASS)
        await self.client.delete_collection(NODE)

    async def _drop(self, resource: Resource, item: JSON, namespace: str | None) -> None:
        name = item["metadata"]["name"]
        await self.client.delete(resource, name, namespace)
        try:
            await self.client.patch(resource, name, {"metadata": {"finalizers": None}}, namespace)
        except NotFound:
            return  # nothing protected it, so the deletion was the end of it

    async def _namespace(self, name: str, labels: dict[str, str]) -> None:
        await self.client.apply(NAMESPACE, {"metadata": {"name": name, "labels": labels}})
        async for event in self.client.watch(SERVICE_ACCOUNT, name, field_selector="metadata.name=default"):
            if event.type == "ADDED":
                return

    async def _outcome(self, namespace: str, name: str) -> Answer:
        async for event in self.client.watch(POD, namespace, type=Pod, field_selector=f"metadata.name={name}"):
            pod = event.object
            if pod.spec.node_name:
                return Answer(node=pod.spec.node_name)
            scheduled = pod.condition("PodScheduled")
            if scheduled is not None and scheduled.reason == "Unschedulable":
                return Answer(message=scheduled.message)
        raise AssertionError(f"the watch on pod {namespace}/{name} ended before kube-scheduler had judged it")

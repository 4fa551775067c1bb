"""A cluster with the whole stack, the grouper included, and the hands of workload controllers."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from prometheus_client import CollectorRegistry

from spinney.api.core import EVENT, POD, Pod
from spinney.api.podgang import POD_GANG, PodGang
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.grouping.configuration import check
from spinney.grouping.grouper import Grouper
from spinney.kube.cache import WatchCache
from spinney.kube.client import Client
from spinney.nodes import Fleet
from spinney.runtime.tasks import end
from spinney.scheduler.config import SchedulerConfig
from spinney.sim.embedded.shapes import gpu_cluster
from spinney.sim.embedded.stack import EVERY_BACKEND, OUR_BACKENDS, Stack, StackOptions, join_at_creation
from tests.conftest import Cluster

DEFAULT = "kind: GrouperConfiguration"
JOB = Resource("batch", "v1", "Job", "jobs")


@dataclass
class World:
    """What a workload's controller does, and what can be seen of it. Mutable: it follows the cluster."""

    client: Client
    namespace: str
    pods: WatchCache[Pod]
    gangs: WatchCache[PodGang]
    fleet: Fleet
    registry: CollectorRegistry
    grouper: Grouper | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def owner(self, resource: Resource, name: str, spec: JSON | None = None, **metadata: Any) -> JSON:
        """Create a workload; returns the reference that its pods carry."""
        manifest = {"metadata": {"name": name, **metadata}, "spec": spec or {}}
        made: JSON = await self.client.create(resource, manifest, self.namespace if resource.namespaced else None)
        return reference(resource, made)

    async def job(self, name: str, pods: int, *, least: int | None = None, made: int | None = None, **pod: Any) -> JSON:
        """Create a Job and the pods it makes."""
        annotations = {"kai.scheduler/batch-min-member": str(least)} if least is not None else {}
        template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
        spec = {"parallelism": pods, "completions": pods, "template": template}
        owner = await self.owner(JOB, name, spec, annotations=annotations)
        for number in range(pods if made is None else made):
            await self.pod(f"{name}-{number}", owner, **pod)
        return owner

    async def pod(self, name: str, owner: JSON | None = None, **fields: Any) -> None:
        """Create a pod of a workload."""
        manifest = a_pod(name, owner, **fields)
        await self.client.create(POD, manifest, self.namespace)

    async def until(self, condition: Callable[[], bool], seconds: float = 60) -> None:
        """Wait until what was seen meets ``condition``."""
        async with asyncio.timeout(seconds):
            while not condition():
                self.changed.clear()
                await self.changed.wait()

    async def settle(self, seconds: float = 10.0) -> None:
        """Let virtual time pass."""
        await asyncio.sleep(seconds)

    def placed(self, prefix: str = "") -> list[str]:
        """Return the pods that have a node and whose name begins so."""
        found = (self.pods.get(key) for key in self.pods)
        return [
            pod.metadata.name for pod in found if pod and pod.spec.node_name and pod.metadata.name.startswith(prefix)
        ]

    def floors(self, name: str = "") -> dict[str, int]:
        """Return the groups of the gang for a workload, each with its minimum."""
        found = (self.gangs.get(key) for key in self.gangs)
        gang = next((each for each in found if each is not None and name in each.metadata.name), None)
        return {} if gang is None else {group.name: group.min_replicas for group in gang.spec.pod_groups}

    def counted(self, metric: str, **labels: str) -> float:
        """Return how far a counter has come."""
        return self.registry.get_sample_value(metric, labels) or 0.0

    async def events(self, reason: str) -> list[str]:
        """Return what events of this reason on pods say."""
        listing = await self.client.list(EVENT, self.namespace)
        return [str(event["message"]) for event in listing.items if event["reason"] == reason]


def reference(resource: Resource, made: JSON) -> JSON:
    """Return the reference to an object that its pods carry."""
    metadata = made["metadata"]
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }


def a_pod(
    name: str,
    owner: JSON | None = None,
    *,
    gpus: int = 8,
    scheduler: str = "spinney-scheduler",
    group: JSON | None = None,
    **meta: Any,
) -> JSON:
    """Return the manifest of a pod that needs GPUs; ``group`` is the native one that it names."""
    resources = {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
    return {
        "metadata": {"name": name, "ownerReferences": [owner] if owner else [], **meta},
        "spec": {
            "schedulerName": scheduler,
            "containers": [{"name": "c", "image": "i", "resources": resources}],
            **({"schedulingGroup": group} if group else {}),
        },
    }


@asynccontextmanager
async def a_world(
    cluster: Cluster,
    *,
    configuration: str = "",
    every_backend: bool = False,
    workloads: bool = False,
    nodes: int = 4,
    scheduler: Mapping[str, Any] = MappingProxyType({}),
    grouper: bool = True,
    at_creation: bool = False,
) -> AsyncIterator[World]:
    """Run scheduler and grouper on nodes of 8 GPUs each; with every backend, what ``spinney up`` runs.

    With ``workloads`` Jobs make their pods themselves; else the test does it. ``scheduler`` configures the scheduler.
    Without ``grouper`` the scheduler waits for one that runs elsewhere. With ``at_creation`` pods are told
    their gang while they are created, on an embedded cluster.
    """
    shape = gpu_cluster(nodes, 8)
    options = StackOptions(
        nodes=shape,
        scheduler=SchedulerConfig(wait_for_grouper=True, **scheduler),
        grouper=replace(check(configuration or DEFAULT), profiles=OUR_BACKENDS) if grouper else None,
    )
    chosen = options
    if every_backend:
        chosen = StackOptions.whole(shape)
        if configuration:
            chosen = replace(chosen, grouper=replace(check(configuration), profiles=EVERY_BACKEND))
    stack = Stack(cluster.connect, replace(chosen, workloads=workloads))
    if at_creation and cluster.server is not None:
        join_at_creation(cluster.server, stack.schedulers.grouper)
    async with stack.running():
        # On a real cluster others may have left something in their namespaces.
        within = None if cluster.embedded else cluster.namespace
        pods = WatchCache(cluster.client, POD, Pod, runtime=cluster.runtime, namespace=within)
        gangs = WatchCache(cluster.client, POD_GANG, PodGang, runtime=cluster.runtime, namespace=within)
        registry = stack.schedulers.manager.metrics.registry
        grouping = stack.schedulers.grouper
        world = World(cluster.client, cluster.namespace, pods, gangs, stack.fleet, registry, grouping)
        pods.subscribe(lambda change: world.changed.set())
        gangs.subscribe(lambda change: world.changed.set())
        watching = [asyncio.create_task(cache.run()) for cache in (pods, gangs)]
        try:
            yield world
        finally:
            await end(*watching)

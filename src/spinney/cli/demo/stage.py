"""The cluster the demo plays on, and a way to wait for what should happen while the screen follows."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from typing import Any

from spinney.api.conditions import find_condition
from spinney.api.core import EVENT, NODE, POD, Node, Pod
from spinney.api.events import Event
from spinney.api.grove import POD_CLIQUE_SET
from spinney.api.kai import POD_GROUP, QUEUE, PodGroup, Queue
from spinney.api.labels import PART_OF
from spinney.api.podgang import POD_GANG, SCHEDULED, PodGang
from spinney.api.struct import JSON
from spinney.api.topology_binding import CLUSTER_TOPOLOGY_BINDING
from spinney.cli.demo.screen import Screen
from spinney.cli.demo.workloads import queues
from spinney.cli.pictures.picture import Scene
from spinney.cli.pictures.shares import queue_shares, uses_of
from spinney.kube.cache import WatchCache, kept_up
from spinney.nodes import ClusterSpec
from spinney.runtime import Runtime
from spinney.runtime.tasks import in_background
from spinney.sim.embedded.shapes import topology_binding
from spinney.sim.embedded.stack import EmbeddedCluster, StackOptions

PATIENCE = 30.0  # seconds until something that should happen is given up
NAMESPACE = "default"


class Stuck(RuntimeError):
    """Something the demo waited for did not happen."""


class Stage:
    """A running cluster whose nodes, pods and gangs are followed."""

    def __init__(self, cluster: EmbeddedCluster, screen: Screen) -> None:
        self.cluster = cluster
        self._screen = screen
        self._changed = asyncio.Event()
        runtime = cluster.runtime
        self.nodes = WatchCache(cluster.client, NODE, Node, runtime=runtime)
        self.pods = WatchCache(cluster.client, POD, Pod, runtime=runtime, namespace=NAMESPACE)
        self.gangs = WatchCache(cluster.client, POD_GANG, PodGang, runtime=runtime, namespace=NAMESPACE)
        self.queues = WatchCache(cluster.client, QUEUE, Queue, runtime=runtime)
        self._event = ""
        for cache in self.caches():
            cache.subscribe(lambda _: self._changed.set())

    def caches(self) -> tuple[WatchCache[Any], ...]:
        """Return everything that is followed."""
        return self.nodes, self.pods, self.gangs, self.queues

    def scene(self) -> Scene:
        """Return what there is to see now."""
        pods = list(self.pods.values())
        return Scene(
            nodes=list(self.nodes.values()),
            pods=pods,
            gangs=[gang.metadata.name for gang in self.gangs.values()],
            queues=queue_shares(self.queues.values(), uses_of(pods)),
            event=self._event,
        )

    async def follow_events(self) -> None:
        """Keep the line about what happened last, until cancelled."""
        async for seen in self.cluster.client.watch(EVENT, NAMESPACE, type=Event):
            event = seen.object
            if event.message:
                about = event.involved_object
                self._event = f"{event.reason} {about.kind} {about.name}: {event.message}"
                self._changed.set()

    async def apply(self, manifest: JSON) -> None:
        """Apply a PodCliqueSet as a user would."""
        await self.cluster.client.apply(POD_CLIQUE_SET, manifest, NAMESPACE, field_manager="demo")

    async def pod_groups(self, workload: str) -> list[PodGroup]:
        """Return the PodGroups that KAI's backend wrote for a PodCliqueSet."""
        found = (await self.cluster.client.list(POD_GROUP, NAMESPACE, type=PodGroup)).items
        return [group for group in found if group.metadata.name.startswith(f"{workload}-")]

    async def delete(self, name: str) -> None:
        """Delete a PodCliqueSet and wait until its pods are gone."""
        await self.cluster.client.delete(POD_CLIQUE_SET, name, NAMESPACE)
        await self.until(lambda: not self.pods_of(name), f"the pods of {name} to go")

    def pods_of(self, workload: str) -> list[Pod]:
        return [pod for pod in self.pods.values() if pod.metadata.labels.get(PART_OF) == workload]

    def runs(self, workload: str, pods: int) -> bool:
        """Tell whether that many pods of a workload exist and all are ready."""
        found = self.pods_of(workload)
        return len(found) == pods and all(pod.is_true("Ready") for pod in found)

    def refusal(self, gang: str) -> str | None:
        """Return why a gang is not placed, once the scheduler has said so."""
        found = next((each for each in self.gangs.values() if each.metadata.name == gang), None)
        condition = find_condition(found.status.conditions, SCHEDULED) if found is not None else None
        return condition.message if condition is not None and condition.status == "False" else None

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        """Follow the cluster on the screen until ``condition`` holds."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not condition():
                    self._screen.show(self.scene())
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise Stuck(f"waited {PATIENCE:g} s for {what}; please report this") from None
        self._screen.show(self.scene())


@asynccontextmanager
async def a_stage(spec: ClusterSpec, screen: Screen) -> AsyncIterator[Stage]:
    """Bring a cluster up and follow it for the time of the block."""
    runtime = Runtime.system()
    cluster = EmbeddedCluster(runtime, StackOptions.whole(spec))
    with closing(runtime.executor):
        async with cluster.running(), cluster.reviewing():
            await cluster.client.apply(CLUSTER_TOPOLOGY_BINDING, topology_binding())
            for queue in queues():
                await cluster.client.apply(QUEUE, queue)
            stage = Stage(cluster, screen)
            async with in_background(stage.follow_events()), kept_up(*stage.caches()):
                yield stage

"""A cluster with a coscheduler in it, and builders of what a test puts there."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from spinney.api.core import EVENT, NODE, POD, Pod
from spinney.api.coscheduling import POD_GROUP, PodGroup, PodGroupStatus
from spinney.api.labels import COSCHEDULING_GROUP
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.coscheduling.framework import FrameworkRegistry
from spinney.coscheduling.process.configuration import CoschedulerConfiguration, parse_configuration
from spinney.coscheduling.process.process import CoschedulerProcess
from spinney.kube.cache import Change, WatchCache
from spinney.kube.client import Client
from spinney.kube.crds import install_crds
from spinney.kube.errors import Forbidden
from spinney.kube.keys import Key
from spinney.kube.transport import Transport
from spinney.runtime import Runtime
from spinney.runtime.tasks import end
from tests.conftest import Cluster

SCHEDULER = "coscheduling"


def configured(**arguments: object) -> CoschedulerConfiguration:
    """Return a configuration with these arguments for the coscheduling plugin."""
    profile = {"schedulerName": SCHEDULER, "pluginConfig": [{"name": "Coscheduling", "args": arguments}]}
    native = {**profile, "schedulerName": "default-scheduler"}
    return parse_configuration({"profiles": [profile, native]})


def a_node(name: str, *, cpu: str = "4", pods: int = 110, labels: Mapping[str, str] | None = None, **spec: Any) -> JSON:
    amounts = {"cpu": cpu, "memory": "64Gi", "pods": str(pods)}
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": spec,
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def a_pod(
    name: str,
    *,
    group: str = "",
    cpu: str = "1",
    priority_class: str = "",
    scheduler: str = SCHEDULER,
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> JSON:
    membership = {COSCHEDULING_GROUP: group} if group else {}
    container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": cpu}}}
    body: JSON = {
        "schedulerName": scheduler,
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
        **({"priorityClassName": priority_class} if priority_class else {}),
        **spec,
    }
    return {"metadata": {"name": name, "labels": {**membership, **(labels or {})}}, "spec": body}


def a_group(name: str, minimum: int, **spec: Any) -> JSON:
    """Return a PodGroup of scheduler-plugins."""
    return {"metadata": {"name": name}, "spec": {"minMember": minimum, **spec}}


PRIORITY_CLASS = Resource("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False)


@dataclass
class World:
    """A cluster, the coscheduler on it, and what was seen of its pods."""

    client: Client
    runtime: Runtime
    namespace: str
    configuration: CoschedulerConfiguration = field(default_factory=CoschedulerConfiguration.in_place_of_kube_scheduler)
    process: CoschedulerProcess | None = None
    transport: Transport | None = None
    """What the scheduler reaches the cluster by, if not by what the test does."""
    pods: dict[str, Pod] = field(default_factory=dict)
    groups: dict[str, PodGroup] = field(default_factory=dict)
    patience: float = float("inf")
    watch: Callable[["World"], None] = lambda world: None
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    # -- building ----------------------------------------------------------------------------------------------------

    async def nodes(self, *nodes: JSON) -> None:
        """Create nodes, as they should be: the API server of a cluster taints new ones as not ready."""
        for node in nodes:
            await self.client.create(NODE, node)
            name, taints = node["metadata"]["name"], node["spec"].get("taints", [])
            await self.client.patch(NODE, name, {"spec": {"taints": taints}})
            await self.client.patch(NODE, name, {"status": node["status"]}, subresource="status")

    async def create(self, *pods: JSON) -> None:
        for pod in pods:
            await self.client.create(POD, pod, self.namespace)

    async def group(self, name: str, minimum: int, **spec: Any) -> None:
        """Create a PodGroup."""
        await self.client.create(POD_GROUP, a_group(name, minimum, **spec), self.namespace)

    async def gang(self, name: str, size: int, *, minimum: int | None = None, cpu: str = "1", **spec: Any) -> None:
        """Create a PodGroup and its pods, ``<name>-0`` and on."""
        await self.group(name, size if minimum is None else minimum)
        await self.create(*(a_pod(f"{name}-{number}", group=name, cpu=cpu, **spec) for number in range(size)))

    async def priority(self, name: str, value: int) -> None:
        """Create a priority class if it is not there; an API server takes pods of it a little later."""
        await self.client.apply(PRIORITY_CLASS, {"metadata": {"name": name}, "value": value})
        async with asyncio.timeout(60):
            while not await self._takes(a_pod("tried", priority_class=name)):  # noqa: ASYNC110 - it does not say
                await asyncio.sleep(0.05)

    async def _takes(self, pod: JSON) -> bool:
        try:
            await self.client.create(POD, pod, self.namespace, dry_run=True)
        except Forbidden:
            return False
        return True

    async def delete(self, *names: str) -> None:
        """Delete pods at once."""
        for name in names:
            await self.client.delete(POD, name, self.namespace, grace_period_seconds=0)

    async def phase(self, name: str, phase: str) -> None:
        """Have a pod reach a phase, as its kubelet would."""
        await self.client.patch(POD, name, {"status": {"phase": phase}}, self.namespace, subresource="status")

    # -- looking -----------------------------------------------------------------------------------------------------

    def node_of(self, name: str) -> str:
        """Return where a pod is."""
        return self.pods[name].spec.node_name if name in self.pods else ""

    def bound(self, prefix: str = "") -> list[str]:
        """Return the pods that have a node and whose name begins so."""
        return sorted(name for name in self.pods if name.startswith(prefix) and self.node_of(name))

    def status(self, group: str) -> PodGroupStatus:
        """Return the status of a PodGroup as last seen."""
        return self.groups[group].status if group in self.groups else PodGroupStatus()

    def nominated(self, name: str) -> str:
        """Return the node a pod was promised."""
        return self.pods[name].status.nominated_node_name if name in self.pods else ""

    def message(self, name: str) -> str:
        """Return why a pod says it waits."""
        condition = self.pods[name].condition("PodScheduled") if name in self.pods else None
        return condition.message if condition is not None and condition.status == "False" else ""

    async def until(self, condition: Callable[[], bool], seconds: float = 60) -> None:
        """Wait until what was seen meets ``condition``; in real time for a minute at least: machines differ."""
        async with asyncio.timeout(seconds if self.patience == float("inf") else max(seconds, 60)):
            while not condition():
                self.changed.clear()
                await self.changed.wait()

    async def settle(self, seconds: float = 5.0) -> None:
        """Let time pass, in which nothing should go wrong; in real time not more than there is patience for."""
        await asyncio.sleep(min(seconds, self.patience))

    async def events(self, reason: str, kind: str = "Pod", *, least: int = 0, saying: str = "") -> list[str]:
        """Return what events of this reason on objects of this kind say, once so many of them have a text.

        Whoever waits for events does so while the scheduler runs: one that stops drops what it could not send in time.
        """
        listing = await self.client.list(EVENT, self.namespace)
        seen = {event["metadata"]["name"]: event for event in listing.items}

        def messages() -> list[str]:
            chosen = (event for event in seen.values() if event["involvedObject"]["kind"] == kind)
            found = (str(event["message"]) for event in chosen if event["reason"] == reason)
            return [message for message in found if saying in message]

        if len(messages()) < least:
            async for event in self.client.watch(EVENT, self.namespace, resource_version=listing.resource_version):
                seen[event.object["metadata"]["name"]] = event.object
                if len(messages()) >= least:
                    break
        return messages()

    # -- running -----------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def scheduling(
        self, configuration: CoschedulerConfiguration | None = None, *, registry: FrameworkRegistry | None = None
    ) -> AsyncIterator["World"]:
        """Run a coscheduler for the time of the block; a second block is a restart."""
        transport = self.transport or self.client.transport
        client = Client(transport, self.runtime, field_manager="spinney-coscheduler")
        self.process = CoschedulerProcess(client, configuration or self.configuration, registry=registry)
        running = asyncio.create_task(self.process.run())
        ready = asyncio.create_task(self.process.manager.wait_until_ready())
        await asyncio.wait({running, ready}, return_when=asyncio.FIRST_COMPLETED)
        try:
            if running.done():
                await running
            yield self
        finally:
            ready.cancel()
            self.process.stop()
            await running


@asynccontextmanager
async def a_world(cluster: Cluster, configuration: CoschedulerConfiguration | None = None) -> AsyncIterator[World]:
    """A world on a test's cluster with its pods and groups being followed, and no scheduler yet."""
    await install_crds(cluster.client)
    async with followed(cluster.client, cluster.runtime, cluster.namespace) as world:
        if configuration is not None:
            world.configuration = configuration
        if not cluster.embedded:
            world.patience = 2.0
        yield world


@asynccontextmanager
async def followed(client: Client, runtime: Runtime, namespace: str) -> AsyncIterator[World]:
    """Follow the pods and groups of a namespace."""
    world = World(client, runtime, namespace)

    def take_pod(change: Change[Pod]) -> None:
        _keep(world.pods, change.key, change.new)
        world.changed.set()
        world.watch(world)

    def take_group(change: Change[PodGroup]) -> None:
        _keep(world.groups, change.key, change.new)
        world.changed.set()

    pods = WatchCache(client, POD, Pod, runtime=runtime, namespace=namespace)
    groups = WatchCache(client, POD_GROUP, PodGroup, runtime=runtime, namespace=namespace)
    pods.subscribe(take_pod)
    groups.subscribe(take_group)
    tasks = [asyncio.create_task(cache.run()) for cache in (pods, groups)]
    try:
        await pods.wait_for_sync()
        await groups.wait_for_sync()
        yield world
    finally:
        await end(*tasks)


def _keep(book: dict[str, Any], key: Key, value: object) -> None:
    if value is None:
        book.pop(key.name, None)
    else:
        book[key.name] = value

"""The stage of a scenario: a cluster with nodes, operator and scheduler, the hands of a user, and a witness.

:class:`Stages` opens one on the embedded cluster, where it runs on virtual time, or on a real control plane. The
operator is configured from the backend under test, through the file an administrator would write. Waiting is always
for something: a scenario names a condition over what the API server reported, and it is looked at after every change.
When the stage closes, everything that was ever written is judged by :mod:`tests.e2e.invariants`.
"""

import asyncio
import copy
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, NoReturn

from spinney.api import labels as marks
from spinney.api import volcano
from spinney.api.core import POD, Pod
from spinney.api.events import Event
from spinney.api.grove import (
    POD_CLIQUE,
    POD_CLIQUE_SCALING_GROUP,
    POD_CLIQUE_SET,
    PodClique,
    PodCliqueScalingGroup,
    PodCliqueSet,
)
from spinney.api.podgang import PodGang
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.api.topology_binding import CLUSTER_TOPOLOGY_BINDING
from spinney.backends.builtin import every_backend
from spinney.coscheduling.process.configuration import CoschedulerConfiguration
from spinney.coscheduling.process.process import CoschedulerProcess
from spinney.kube.client import Client
from spinney.kube.errors import Conflict
from spinney.nodes import Fleet, PodTimes
from spinney.operator.configuration import InitContainer, check
from spinney.operator.operator import Settings
from spinney.scheduler.config import SchedulerConfig
from spinney.sim.embedded.stack import Stack, StackOptions
from spinney.testing.peers import Peer
from tests.conftest import Cluster
from tests.e2e import floor
from tests.e2e.backends import SPINNEY, Backend
from tests.e2e.chronicle import Chronicle
from tests.e2e.invariants import violations
from tests.e2e.leftovers import leftovers
from tests.e2e.peering import crds_beside, serving
from tests.e2e.reviewing import Reviews

FOUR_MINUTES = 240.0
"""How long Grove's scenarios wait for anything, here mostly of virtual time."""

BACKENDS_SHIPPED = every_backend()

SCALABLE: dict[type[Any], Resource] = {
    PodCliqueSet: POD_CLIQUE_SET,
    PodCliqueScalingGroup: POD_CLIQUE_SCALING_GROUP,
    PodClique: POD_CLIQUE,
}


@dataclass
class Stage:
    """A running cluster and what a user does to it. Mutable: it knows which nodes are cordoned, and grows a log."""

    cluster: Cluster
    backend: Backend
    stack: Stack
    chronicle: Chronicle
    cordoned: list[str] = field(default_factory=list)
    settled: list[int] = field(default_factory=list)
    topologies: set[str] = field(default_factory=set)

    @property
    def client(self) -> Client:
        """Return the user's client."""
        return self.cluster.client

    @property
    def namespace(self) -> str:
        """Return where the scenario plays."""
        return self.cluster.namespace

    @property
    def fleet(self) -> Fleet:
        return self.stack.fleet

    # -- what there is -------------------------------------------------------------------------------------------------

    def pods(self, *cliques: str) -> list[Pod]:
        """Return the pods that are not being deleted, of some PodCliques or of all, by name."""
        found = sorted(self.chronicle.all(Pod).values(), key=lambda pod: pod.metadata.name)
        chosen = [pod for pod in found if not cliques or pod.metadata.labels[marks.POD_CLIQUE] in cliques]
        return [pod for pod in chosen if not pod.metadata.deleting]

    def bound(self, *cliques: str) -> list[Pod]:
        """Return the pods that have a node."""
        return [pod for pod in self.pods(*cliques) if pod.spec.node_name]

    def pending(self, *cliques: str) -> list[Pod]:
        """Return the pods that have no node."""
        return [pod for pod in self.pods(*cliques) if not pod.spec.node_name]

    def ready(self, *cliques: str) -> list[Pod]:
        return [pod for pod in self.pods(*cliques) if pod.is_true("Ready")]

    def uids(self, *cliques: str) -> set[str | None]:
        return {pod.metadata.uid for pod in self.pods(*cliques)}

    def nodes_of(self, *cliques: str) -> set[str]:
        """Return the nodes that hold pods."""
        return {pod.spec.node_name for pod in self.bound(*cliques)}

    def gang(self, name: str) -> PodGang:
        """Return a gang as last seen."""
        return self.chronicle.all(PodGang)[name]

    def clique(self, name: str) -> PodClique:
        """Return a PodClique as last seen."""
        return self.chronicle.all(PodClique)[name]

    def group(self, name: str) -> PodCliqueScalingGroup:
        """Return a scaling group as last seen."""
        return self.chronicle.all(PodCliqueScalingGroup)[name]

    def pod_clique_set(self, name: str) -> PodCliqueSet:
        """Return a PodCliqueSet as last seen."""
        return self.chronicle.all(PodCliqueSet)[name]

    # -- waiting -------------------------------------------------------------------------------------------------------

    async def until(self, condition: Callable[[], bool], *, within: float = FOUR_MINUTES) -> None:
        """Wait until what was seen meets a condition."""
        try:
            await self.chronicle.until(condition, within=within)
        except TimeoutError:
            self._give_up(f"not met within {within} s")

    async def stays(self, condition: Callable[[], bool], *, seconds: float = 30.0) -> None:
        """Check that a condition holds now and after every change for a time."""
        try:
            await self.chronicle.until(lambda: not condition(), within=seconds)
        except TimeoutError:
            return
        self._give_up(f"did not stay for {seconds} s")

    async def settle(self, *, within: float = FOUR_MINUTES) -> None:
        """Wait until nothing moves any more; gangs must then be whole or not placed at all."""
        try:
            await self.chronicle.rest(5.0 if self.cluster.embedded else 1.0, within=within)
        except TimeoutError as error:
            self._give_up(str(error))
        self.settled.append(self.chronicle.revision)

    async def until_seen(
        self, resource: Resource, name: str, condition: Callable[[JSON], bool], *, within: float = FOUR_MINUTES
    ) -> JSON:
        """Wait until an object of any kind exists and meets a condition, and return it."""
        namespace = self.namespace if resource.namespaced else None
        selector = f"metadata.name={name}"
        async with asyncio.timeout(within):
            listing = await self.client.list(resource, namespace, field_selector=selector)
            for found in listing.items:
                if condition(found):
                    return found
            version = listing.resource_version
            async for event in self.client.watch(
                resource, namespace, field_selector=selector, resource_version=version
            ):
                if event.type != "DELETED" and condition(event.object):
                    return event.object
        raise AssertionError(f"the watch of {resource.kind} {name} ended")

    async def until_ready(self, count: int, *, distinct: bool = False) -> None:
        """Wait until exactly so many pods exist and all of them are ready; ``distinct``: each on a node of its own."""
        await self.until(lambda: len(self.ready()) == len(self.pods()) == count)
        if distinct:
            assert len(self.nodes_of()) == count

    async def until_bound(self, count: int, *, of: int) -> None:
        """Wait until so many pods have a node and the others say that they are unschedulable, and nothing moves."""
        await self.until(lambda: len(self.pods()) == of and len(self.bound()) == count)
        await self.until_unschedulable(of - count)
        await self.settle()
        assert len(self.bound()) == count

    async def until_pending(self, count: int) -> None:
        """Wait until exactly so many pods exist, all of them without a node and told why."""
        await self.until_bound(0, of=count)

    async def until_unschedulable(self, count: int) -> None:
        """Wait until so many pods are pending, each with an answer of its scheduler or held by its gate.

        A pod that a scheduler has looked at has an event that says so, too.
        """
        await self.until(lambda: len(self.pending()) == count and all(map(self._is_explained, self.pending())))

    def _is_explained(self, pod: Pod) -> bool:
        condition = pod.condition("PodScheduled")
        if condition is None or condition.status != "False":
            return False
        if pod.gated:
            return condition.reason == "SchedulingGated"
        return condition.reason in self.backend.answers and self.backend.event in self.events_of(pod)

    def events_of(self, pod: Pod) -> list[str]:
        """Return the reasons of the events about a pod."""
        events = self.chronicle.all(Event).values()
        return [event.reason for event in events if event.involved_object.uid == pod.metadata.uid]

    def _give_up(self, what: str) -> NoReturn:
        rows = [
            f"  {pod.metadata.name:40} {pod.spec.node_name or '-':14} {pod.status.phase:10}"
            f" ready={pod.is_true('Ready')} gated={pod.gated} deleting={pod.metadata.deleting}"
            f" {_why(pod)}"
            for pod in sorted(self.chronicle.all(Pod).values(), key=lambda pod: pod.metadata.name)
        ]
        gangs = [
            f"  {name:40} " + ", ".join(f"{each.type}={each.status}" for each in gang.status.conditions)
            for name, gang in sorted(self.chronicle.all(PodGang).items())
        ]
        found = violations(self.chronicle.log(), self.settled)
        raise AssertionError("\n".join([what, "pods:", *rows, "gangs:", *gangs, "violations:", *found]))

    # -- the hands of a user -------------------------------------------------------------------------------------------

    async def deploy(self, manifest: JSON) -> PodCliqueSet:
        """Create a PodCliqueSet for the backend under test."""
        return await self.apply(for_backend(manifest, self.backend))

    async def apply(self, manifest: JSON) -> PodCliqueSet:
        """Create a PodCliqueSet as it is written."""
        created = await self.client.create(POD_CLIQUE_SET, manifest, self.namespace, type=PodCliqueSet)
        await self.until(lambda: created.metadata.name in self.chronicle.all(PodCliqueSet))
        return created

    async def cordon(self, count: int) -> None:
        """Close the last nodes that are open, so many of them."""
        open_nodes = [name for name in self.fleet.names if name not in self.cordoned]
        for name in open_nodes[len(open_nodes) - count :]:
            await self.close(name)

    async def close(self, node: str) -> None:
        await self.fleet.cordon(node)
        if node not in self.cordoned:
            self.cordoned.append(node)

    async def uncordon(self, count: int | None = None) -> None:
        """Open so many of the closed nodes, or all of them."""
        chosen = self.cordoned[: len(self.cordoned) if count is None else count]
        del self.cordoned[: len(chosen)]
        for name in chosen:
            await self.fleet.cordon(name, unschedulable=False)

    async def scale(self, kind: type[Any], name: str, replicas: int) -> None:
        """Scale an object through its scale subresource."""
        body = {"spec": {"replicas": replicas}}
        await self.client.patch(SCALABLE[kind], name, body, self.namespace, subresource="scale")

    async def change(self, name: str, *cliques: str, edit: Callable[[JSON], None] | None = None) -> int:
        """Edit the pod template of cliques, by default their image; returns the revision before the change."""

        def rename(clique: JSON) -> None:
            container = clique["spec"]["podSpec"]["containers"][0]
            container["image"] = container["image"].split("@")[0] + f"@{len(container['image'])}"

        return await self.edit(name, lambda pcs: _each_clique(pcs, cliques, edit or rename))

    async def edit(self, name: str, edit: Callable[[JSON], None]) -> int:
        """Edit a PodCliqueSet; returns the revision before the change."""
        while True:
            found = await self.client.get(POD_CLIQUE_SET, name, self.namespace)
            before = self.chronicle.revision
            edit(found)
            try:
                made = await self.client.replace(POD_CLIQUE_SET, found, self.namespace, type=PodCliqueSet)
            except Conflict:
                continue  # the operator has just written its status
            break
        await self.until(lambda: self.pod_clique_set(name).metadata.generation == made.metadata.generation)
        return before

    async def delete_pod(self, pod: Pod) -> None:
        await self.client.delete(POD, pod.metadata.name, self.namespace, uid=pod.metadata.uid)

    async def kill(self, *pods: Pod) -> None:
        """Close the nodes of pods and delete the pods: nothing comes back in their place."""
        for pod in pods:
            await self.close(pod.spec.node_name)
            await self.delete_pod(pod)
        uids = {pod.metadata.uid for pod in pods}
        await self.until(lambda: not uids & {pod.metadata.uid for pod in self.chronicle.all(Pod).values()})

    async def bind_topology(self, manifest: JSON | None = None) -> None:
        """Create a ClusterTopologyBinding, by default Grove's with four levels."""
        created = await self.client.create(CLUSTER_TOPOLOGY_BINDING, manifest or floor.a_binding())
        self.topologies.add(created["metadata"]["name"])

    async def remove_topologies(self) -> None:
        """Delete the ClusterTopologyBindings of the scenario that are still there; they belong to no namespace."""
        listing = await self.client.list(CLUSTER_TOPOLOGY_BINDING)
        for name in {found["metadata"]["name"] for found in listing.items} & self.topologies:
            await self.client.delete(CLUSTER_TOPOLOGY_BINDING, name)

    async def remove(self, *names: str) -> None:
        """Delete PodCliqueSets and wait until nothing of them is left."""
        for name in names:
            await self.client.delete(POD_CLIQUE_SET, name, self.namespace)
        mine = (PodCliqueSet, PodCliqueScalingGroup, PodClique, PodGang, Pod)
        await self.until(lambda: not any(_belongs(each, names) for kind in mine for each in self.objects(kind)))
        left = await leftovers(self.client, self.namespace, names)
        assert left == []

    def objects(self, kind: type[Any]) -> Sequence[Any]:
        return list(self.chronicle.all(kind).values())


class Stages:
    """Opens stages on one cluster, for one backend."""

    def __init__(self, cluster: Cluster, backend: Backend, reviews: Reviews) -> None:
        self.cluster = cluster
        self.backend = backend
        self._reviews = reviews

    def __call__(
        self,
        nodes: int,
        *,
        cordoned: int = 0,
        topology: bool = True,
        mnnvl: bool = False,
        init_image: str = "spinney",
        times: PodTimes | None = None,
        keep: bool = False,
    ) -> AbstractAsyncContextManager[Stage]:
        """Run a scenario on so many nodes, with the operator configured for the backend."""
        configuration = self.backend.configuration(topology=topology, mnnvl=mnnvl)
        settings = Settings.of(check(configuration, BACKENDS_SHIPPED), own=InitContainer(image=init_image))
        pace = times or (floor.QUICK if self.cluster.embedded else floor.INSTANT)
        ours = self.backend.served_by == "session scheduler"
        options = StackOptions(
            crds=crds_beside(self.backend.served_by) if isinstance(self.backend.served_by, Peer) else None,
            nodes=floor.a_floor(nodes, times=pace),
            operator=settings,
            scheduler=SchedulerConfig(scheduler_names=(self.backend.name if ours else SPINNEY.name,)),
        )
        return self.open(options, cordoned=cordoned, keep=keep)

    @asynccontextmanager
    async def open(self, options: StackOptions, *, cordoned: int = 0, keep: bool = False) -> AsyncIterator[Stage]:
        """Run a stage; at the end what was put on it is deleted and the log is judged.

        With ``keep`` its workloads stay, and another stage, with another operator, may open on the same cluster.
        """
        stack = Stack(self.cluster.connect, options)
        chronicle = Chronicle(self.cluster.client, self.cluster.namespace)
        stage = Stage(self.cluster, self.backend, stack, chronicle)
        try:
            async with (
                self._serving(),
                self._peer(),
                stack.running(),
                self._coscheduler(),
                asyncio.TaskGroup() as tasks,
            ):
                if self.cluster.embedded:
                    await self._reviews.connect(stack.operator.admission, self.cluster.client)
                followers = await chronicle.begin(tasks)
                if self.backend.volcano_queues:
                    await _open_queue(self.cluster.client)
                await stage.cordon(cordoned)
                yield stage
                if not keep:
                    await stage.remove(*chronicle.all(PodCliqueSet))
                    await stage.remove_topologies()
                await chronicle.complete(within=FOUR_MINUTES)
                for follower in followers:
                    follower.cancel()
        except BaseExceptionGroup as group:
            raise _innermost(group) from None
        assert violations(chronicle.log(), stage.settled) == []

    @asynccontextmanager
    async def _playing(self, stack: Stack) -> AsyncIterator[None]:
        """Run everything that takes part."""
        async with self._serving(), self._peer(), stack.running(), self._coscheduler():
            yield

    @asynccontextmanager
    async def _coscheduler(self) -> AsyncIterator[None]:
        """Run the coscheduler beside the rest, for a backend whose pods it serves."""
        if self.backend.served_by != "coscheduler":
            yield
            return
        configuration = CoschedulerConfiguration.in_place_of_kube_scheduler()
        process = CoschedulerProcess(self.cluster.connect("coscheduler"), configuration)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(process.run(), name="coscheduler")
            await process.manager.wait_until_ready()
            try:
                yield
            finally:
                process.stop()

    def _peer(self) -> AbstractAsyncContextManager[None]:
        """Return the scheduler of others that places the pods of a backend, if one does."""
        peer = self.backend.served_by
        return serving(peer, self.cluster) if isinstance(peer, Peer) else nullcontext()

    def _serving(self) -> AbstractAsyncContextManager[object]:
        """Return the background work of the embedded server; a real one does its own."""
        return nullcontext() if self.cluster.server is None else self.cluster.server.running()


def _innermost(error: BaseException) -> BaseException:
    """Return what a scenario failed with, without the groups of tasks it ran in; several errors stay together."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


async def _open_queue(client: Client) -> None:
    """Do for Volcano's default queue what Volcano's own controller does."""
    await client.apply(volcano.QUEUE, {"metadata": {"name": volcano.DEFAULT_QUEUE}, "spec": {}})
    status = {"metadata": {"name": volcano.DEFAULT_QUEUE}, "status": {"state": "Open"}}
    await client.apply(volcano.QUEUE, status, subresource="status")


def for_backend(manifest: JSON, backend: Backend) -> JSON:
    """Return a PodCliqueSet whose pods name the scheduler of a backend."""
    manifest = copy.deepcopy(manifest)
    for clique in manifest["spec"]["template"]["cliques"]:
        clique["spec"]["podSpec"]["schedulerName"] = backend.name
    return manifest


def _each_clique(pcs: JSON, names: Sequence[str], edit: Callable[[JSON], None]) -> None:
    for clique in pcs["spec"]["template"]["cliques"]:
        if clique["name"] in names:
            edit(clique)


def _belongs(found: Any, names: Sequence[str]) -> bool:
    return found.metadata.name in names or found.metadata.labels.get(marks.PART_OF) in names


def _why(pod: Pod) -> str:
    condition = pod.condition("PodScheduled")
    return "" if condition is None else f"{condition.reason}: {condition.message}"

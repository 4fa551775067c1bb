"""One line through all the rooms: a PodCliqueSet becomes a gang that our scheduler places on simulated nodes.

On the embedded cluster, on virtual time, and on a real Kubernetes control plane.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from spinney.api.conditions import find_condition
from spinney.api.core import POD, Pod
from spinney.api.grove import POD_CLIQUE, POD_CLIQUE_SET, PodClique
from spinney.api.meta import Metadata
from spinney.api.podgang import INITIALIZED, POD_GANG, SCHEDULED, PodGang
from spinney.api.struct import JSON
from spinney.kube.cache import Change, WatchCache
from spinney.kube.client import Client
from spinney.nodes import ClusterSpec, NodeGroup
from spinney.runtime import Runtime, run_virtual
from spinney.runtime.tasks import end
from spinney.sim.embedded.stack import EmbeddedCluster, Stack, StackOptions
from tests.conftest import Cluster
from tests.virtual_time import on_virtual_time

GPU_NODE: dict[str, str | int | float] = {"cpu": 64, "memory": "512Gi", "nvidia.com/gpu": 8}


def gpu_nodes(count: int, prefix: str = "gpu") -> NodeGroup:
    return NodeGroup(name=f"{prefix}-{{index}}", count=count, capacity=GPU_NODE)


def a_two_clique_gang(name: str = "pair", *, workers: int = 3) -> JSON:
    """Return a leader and some workers, each worker as large as a whole node."""
    return {
        "metadata": {"name": name},
        "spec": {"replicas": 1, "template": {"cliques": [a_clique("leader", 1, 0), a_clique("worker", workers, 8)]}},
    }


def a_clique(name: str, replicas: int, gpus: int) -> JSON:
    container = {"name": "main", "image": "pause", "resources": {"limits": {"cpu": "1", "nvidia.com/gpu": str(gpus)}}}
    pod_spec = {"schedulerName": "spinney-scheduler", "containers": [container]}
    return {"name": name, "spec": {"roleName": name, "replicas": replicas, "podSpec": pod_spec}}


class Story:
    """What happened to pods and gangs, in the order it was committed, and a way to wait for what should happen."""

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.gangs: dict[str, PodGang] = {}
        self.cliques: set[str] = set()
        self.log: list[tuple[str, str]] = []
        self.changed = asyncio.Event()
        self._initialized: dict[str, int] = {}  # gangs, and the revision at which each was first seen to be it
        self._released: dict[str, tuple[str, int]] = {}  # pods, with their gang and revision

    def take_pod(self, change: Change[Pod]) -> None:
        if change.new is None:
            self.pods.pop(change.key.name, None)
        else:
            pod = self.pods[change.key.name] = change.new
            assert not (pod.gated and pod.spec.node_name), f"{pod.metadata.name} was bound while gated"
            if not pod.gated:
                released = pod.metadata.labels["grove.io/podgang"], _revision(pod.metadata)
                self._released.setdefault(pod.metadata.name, released)
        self._note(change.key.name, change.new and (change.new.spec.node_name, change.new.status.phase))

    def take_gang(self, change: Change[PodGang]) -> None:
        if change.new is None:
            self.gangs.pop(change.key.name, None)
        else:
            self.gangs[change.key.name] = change.new
            if self.says(change.key.name, INITIALIZED, "True"):
                self._initialized.setdefault(change.key.name, _revision(change.new.metadata))
        self._note(change.key.name, change.new and change.new.status.phase)

    def take_clique(self, change: Change[PodClique]) -> None:
        if change.new is None:
            self.cliques.discard(change.key.name)
        else:
            self.cliques.add(change.key.name)
        self.changed.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until what was seen meets ``condition``."""
        async with asyncio.timeout(60):
            while not condition():
                self.changed.clear()
                await self.changed.wait()

    def bound(self) -> int:
        return sum(bool(pod.spec.node_name) for pod in self.pods.values())

    def ready(self) -> int:
        return sum(pod.is_true("Ready") for pod in self.pods.values())

    def says(self, gang: str, condition: str, status: str) -> bool:
        found = find_condition(self.gangs[gang].status.conditions, condition) if gang in self.gangs else None
        return found is not None and found.status == status

    def _note(self, name: str, what: object) -> None:
        self.log.append((name, repr(what)))
        self.changed.set()

    def check_gates(self) -> None:
        """Check that no pod was released before its gang was Initialized; the two are told on streams of their own."""
        for pod, (gang, revision) in self._released.items():
            assert gang in self._initialized, f"{pod} was released, and {gang} was never Initialized"
            assert self._initialized[gang] < revision, f"{pod} was released too early"


def _revision(metadata: Metadata) -> int:
    return int(metadata.resource_version or 0)


@asynccontextmanager
async def followed(client: Client, runtime: Runtime, namespace: str) -> AsyncIterator[Story]:
    """Follow the PodCliques, gangs and pods of a namespace."""
    story = Story()
    gangs = WatchCache(client, POD_GANG, PodGang, runtime=runtime, namespace=namespace)
    pods = WatchCache(client, POD, Pod, runtime=runtime, namespace=namespace)
    cliques = WatchCache(client, POD_CLIQUE, PodClique, runtime=runtime, namespace=namespace)
    cliques.subscribe(story.take_clique)
    gangs.subscribe(story.take_gang)
    pods.subscribe(story.take_pod)
    tasks = [asyncio.create_task(cache.run()) for cache in (cliques, gangs, pods)]
    try:
        for cache in (cliques, gangs, pods):
            await cache.wait_for_sync()
        yield story
        story.check_gates()
    finally:
        await end(*tasks)


async def test_a_gang_comes_up_when_all_of_it_fits(cluster: Cluster) -> None:
    """A two-clique gang is gated until complete, waits as a whole while one node is missing, then starts whole."""
    options = StackOptions(nodes=ClusterSpec(nodes=(gpu_nodes(2),)))
    stack = Stack(cluster.connect, options)
    async with stack.running(), followed(cluster.client, cluster.runtime, cluster.namespace) as story:
        await cluster.client.create(POD_CLIQUE_SET, a_two_clique_gang(workers=3), cluster.namespace)

        await story.until(lambda: story.says("pair-0", SCHEDULED, "False") and len(story.pods) == 4)
        assert story.bound() == 0

        await stack.fleet.add(gpu_nodes(1, prefix="late"))
        await story.until(lambda: story.ready() == 4)
        assert len({pod.spec.node_name for pod in story.pods.values() if "worker" in pod.metadata.name}) == 3
        await story.until(lambda: story.says("pair-0", SCHEDULED, "True"))
        await story.until(lambda: story.gangs["pair-0"].status.phase == "Running")


async def test_what_is_deleted_leaves_nothing_behind(cluster: Cluster) -> None:
    """Deleting the PodCliqueSet takes its gang and its pods with it."""
    stack = Stack(cluster.connect, StackOptions(nodes=ClusterSpec(nodes=(gpu_nodes(3),))))
    async with stack.running(), followed(cluster.client, cluster.runtime, cluster.namespace) as story:
        await cluster.client.create(POD_CLIQUE_SET, a_two_clique_gang(), cluster.namespace)
        await story.until(lambda: story.ready() == 4)

        await cluster.client.delete(POD_CLIQUE_SET, "pair", cluster.namespace)

        await story.until(lambda: not story.pods and not story.gangs and not story.cliques)


def a_run(seed: int) -> list[tuple[str, str]]:
    """Return the log of one gang's life on the virtual clock."""

    async def live() -> list[tuple[str, str]]:
        runtime = Runtime.virtual(seed)
        spec = ClusterSpec.parse("pods: {start: 100ms..3s, ready: 50ms..1s}")
        nodes = ClusterSpec(nodes=(gpu_nodes(4),), pods=spec.pods)
        embedded = EmbeddedCluster(runtime, StackOptions(nodes=nodes))
        async with embedded.running(), followed(embedded.client, runtime, "default") as story:
            await embedded.client.create(POD_CLIQUE_SET, a_two_clique_gang(), "default")
            await story.until(lambda: story.ready() == 4)
            await embedded.client.delete(POD_CLIQUE_SET, "pair", "default")
            await story.until(lambda: not story.pods)
            return story.log

    return run_virtual(live())


def test_a_seed_replays_a_run() -> None:
    """The whole stack on the virtual clock gives the same log twice from one seed, and another from another."""
    assert a_run(7) == a_run(7)
    assert a_run(7) != a_run(8)


@on_virtual_time
async def test_every_backend_is_served_by_a_scheduler_of_ours() -> None:
    """On the whole stack a gang comes up through each built-in backend, its schedulers sharing one ledger."""
    backends = ("spinney-scheduler", "kai-scheduler", "coscheduling", "default-scheduler")
    runtime = Runtime.virtual(3)
    embedded = EmbeddedCluster(runtime, StackOptions.whole(ClusterSpec(nodes=(gpu_nodes(len(backends)),))))
    async with embedded.running(), followed(embedded.client, runtime, "default") as story:
        for backend in backends:
            cliques = [a_clique("leader", 1, 0), a_clique("worker", 2, 4)]
            for clique in cliques:
                clique["labels"] = {"kai.scheduler/queue": "default"}
                clique["spec"]["podSpec"]["schedulerName"] = backend
            manifest = {"metadata": {"name": backend}, "spec": {"replicas": 1, "template": {"cliques": cliques}}}
            await embedded.client.create(POD_CLIQUE_SET, manifest, "default")
        await story.until(lambda: story.ready() == 3 * len(backends))
        used: dict[str, int] = {}
        for pod in story.pods.values():
            used[pod.spec.node_name] = used.get(pod.spec.node_name, 0) + 4 * ("worker" in pod.metadata.name)
        assert max(used.values()) <= 8

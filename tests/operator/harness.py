"""An operator on a test's cluster, a stand-in for scheduler and kubelets, and a witness of what was written."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from spinney.api import labels as marks
from spinney.api.core import NODE, POD, Pod
from spinney.api.grove import POD_CLIQUE, POD_CLIQUE_SET, PodCliqueSet
from spinney.api.podgang import POD_GANG, PodGang
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.backends.catalogue import Catalogue
from spinney.backends.profiles import Profile, Profiles
from spinney.kube.client import Client
from spinney.kube.crds import install_crds
from spinney.kube.errors import KubeError
from spinney.operator.operator import Operator, Settings
from spinney.operator.pod_states import has_gate
from spinney.runtime import Runtime
from spinney.server import ApiServer
from spinney.sim.embedded.transport import InProcessTransport
from tests.virtual_time import opening

SPINNEY = Profiles((Profile("default-scheduler"), Profile("spinney-scheduler")), "spinney-scheduler")
NAMESPACE = Resource("", "v1", "Namespace", "namespaces", namespaced=False)


@dataclass
class Witness:
    """Everything that happened to pods and gangs, in the order the API server committed it, judged at every revision.

    While ``updating``, nothing but a rolling update takes pods away, and that one step at a time.
    """

    pods: dict[str, list[JSON]] = field(default_factory=dict)
    cliques: dict[str, JSON] = field(default_factory=dict)
    gangs: dict[str, JSON] = field(default_factory=dict)
    gang_history: dict[str, list[JSON]] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
    notes: set[str] = field(default_factory=set)
    writes: int = 0
    updating: bool = False
    _serving: dict[str, set[str]] = field(default_factory=dict)
    _full: dict[str, int] = field(default_factory=dict)
    _minimums: dict[str, int] = field(default_factory=dict)
    _placed: set[str] = field(default_factory=set)

    def saw_clique(self, kind: str, clique: JSON) -> None:
        if kind == "DELETED":
            self.cliques.pop(clique["metadata"]["name"], None)
        else:
            self.cliques[clique["metadata"]["name"]] = clique
            self._minimums[clique["metadata"]["name"]] = clique["spec"].get("minAvailable", 1)

    def saw_gang(self, kind: str, gang: JSON) -> None:
        name = gang["metadata"]["name"]
        if kind == "DELETED":
            self.gangs.pop(name, None)
            return
        before = self.gangs.get(name)
        if before is not None and _is_true(gang, "Initialized") and not _is_true(before, "Initialized"):
            self._check_complete(gang)
        self.gangs[name] = gang
        self.gang_history.setdefault(name, []).append(gang)

    def saw_pod(self, kind: str, pod: JSON) -> None:
        uid = pod["metadata"]["uid"]
        history = self.pods.setdefault(uid, [])
        gated = _gated(pod)
        if kind == "DELETED":
            history.append(pod | {"metadata": {"deletionTimestamp": "at once", **pod["metadata"]}})
        else:
            if not history:
                self._check_unique(pod)
            if not history and not gated and "resumed" not in self.notes:
                self.violations.append(f"pod {pod['metadata']['name']} was created without its gate")
            if history and _gated(history[-1]) and not gated:
                self._check_release(pod)
            history.append(pod)
        self._count(pod, gone=kind == "DELETED")

    def _check_complete(self, gang: JSON) -> None:
        """Check that a gang which has just become Initialized refers to its minimum, and to pods that are there."""
        alive = {history[-1]["metadata"]["name"] for history in self.pods.values() if _alive(history[-1])}
        for group in gang["spec"].get("podgroups", ()):
            names = {reference["name"] for reference in group.get("podReferences", ())}
            if len(names & alive) < group["minReplicas"]:
                self.violations.append(
                    f"gang {gang['metadata']['name']} is Initialized and {group['name']} is not there"
                )

    def _count(self, pod: JSON, *, gone: bool) -> None:
        """Keep count of what is placed and what serves, and check that an update takes one step at a time."""
        labels, uid = pod["metadata"]["labels"], pod["metadata"]["uid"]
        if pod["spec"].get("nodeName"):
            self._placed.add(pod["metadata"]["name"])
        serving = self._serving.setdefault(labels[marks.POD_CLIQUE], set())
        if not gone and _alive(pod) and _is_true(pod, "Ready"):
            serving.add(uid)
        elif uid in serving:
            serving.remove(uid)
            if self.updating:
                self._check_step()
        if not self.updating:
            self._full = {clique: len(uids) for clique, uids in self._serving.items() if uids}

    def _check_step(self) -> None:
        """Check that one pod of a PodClique is missing, one replica of a scaling group and one of the set is broken."""
        broken = set()
        for clique, full in self._full.items():
            serving = len(self._serving[clique])
            place = self._place(clique)
            if full - serving > 1 and not place[1]:
                self.violations.append(f"an update takes {full - serving} pods of {clique} at once")
            if serving < self._minimums.get(clique, 1):
                broken.add(place)
        if len({replica for replica, _ in broken}) > 1 or len({group for _, group in broken if group}) > 1:
            self.violations.append(f"an update breaks several replicas at once: {sorted(broken)}")

    def _place(self, clique: str) -> tuple[str, str]:
        """Return the replica a PodClique is of, and which replica of which scaling group, if any."""
        for history in self.pods.values():
            labels = history[-1]["metadata"]["labels"]
            if labels[marks.POD_CLIQUE] == clique:
                group = labels.get(marks.SCALING_GROUP, "")
                index = labels.get(marks.SCALING_GROUP_REPLICA_INDEX, "")
                return labels[marks.REPLICA_INDEX], f"{group} {index}".strip()
        raise AssertionError(f"no pod of {clique} was ever seen")

    def _check_unique(self, pod: JSON) -> None:
        hostname = pod["spec"]["hostname"]
        for history in self.pods.values():
            last = history[-1] if history else None
            if last is None or "deletionTimestamp" in last["metadata"] or last["spec"]["hostname"] != hostname:
                continue
            owner = last["metadata"]["ownerReferences"][0]["uid"]
            if owner == pod["metadata"]["ownerReferences"][0]["uid"]:
                self.violations.append(f"pod {hostname} was created twice")

    def _check_release(self, pod: JSON) -> None:
        name = pod["metadata"]["name"]
        gang_name = pod["metadata"]["labels"][marks.POD_GANG]
        gang = self.gangs.get(gang_name)
        if gang is None:
            self.violations.append(f"pod {name} was released without a gang")
            return
        if not _was_initialized(gang):
            self.violations.append(f"pod {name} was released while its gang was not Initialized")
        if name not in _references(gang):
            self.violations.append(f"pod {name} was released and its gang does not refer to it")
        base = self.gangs.get(pod["metadata"]["labels"].get(marks.BASE_POD_GANG, ""))
        for group in base["spec"].get("podgroups", ()) if base is not None else ():
            placed = {reference["name"] for reference in group.get("podReferences", ())} & self._placed
            if len(placed) < group["minReplicas"]:
                self.violations.append(f"pod {name} was released before {group['name']} of its base gang was placed")


@dataclass
class World:
    """A cluster with an operator in it."""

    client: Client
    runtime: Runtime
    operator: Operator
    witness: Witness
    server: ApiServer
    namespace: str = "test"
    place: Callable[[Pod], bool] = lambda pod: True
    ready: Callable[[Pod], bool] = lambda pod: True

    async def now_place(self, which: Callable[[Pod], bool] = lambda pod: True) -> None:
        """Let the scheduler place such pods from now on, those that wait included."""
        self.place = which
        await self._look_again()

    async def now_ready(self, which: Callable[[Pod], bool] = lambda pod: True) -> None:
        """Let such pods become ready from now on, those that run included."""
        self.ready = which
        await self._look_again()

    async def _look_again(self) -> None:
        for pod in await self.pods():
            for _ in range(2):
                await _advance(self, await self.client.get(POD, pod.metadata.name, self.namespace, type=Pod))

    async def apply(self, pcs: PodCliqueSet) -> PodCliqueSet:
        """Apply a PodCliqueSet as a user would."""
        return await self.client.apply(POD_CLIQUE_SET, pcs, type=PodCliqueSet, field_manager="user")

    async def settle(self, seconds: float = 5.0) -> None:
        """Let everything that is under way happen."""
        await asyncio.sleep(seconds)
        assert self.witness.violations == []

    async def bring_up(self, pcs: PodCliqueSet, seconds: float = 5.0) -> None:
        """Apply a PodCliqueSet and let everything that follows from it happen."""
        await self.apply(pcs)
        await self.settle(seconds)

    async def pods(self, **labels: str) -> list[Pod]:
        """Return the pods of the namespace that are not being deleted, by name."""
        listing = await self.client.list(POD, self.namespace, type=Pod)
        found = [pod for pod in listing.items if not pod.metadata.deleting]
        return sorted(found, key=lambda pod: pod.metadata.name)

    async def gang(self, name: str) -> PodGang:
        return await self.client.get(POD_GANG, name, self.namespace, type=PodGang)

    async def names(self, resource: Resource) -> list[str]:
        """Return the names of the objects of a kind in the namespace."""
        listing = await self.client.list(resource, self.namespace)
        return sorted(each["metadata"]["name"] for each in listing.items)


@asynccontextmanager
async def a_world(
    settings: Settings | None = None,
    *,
    placing: bool = True,
    catalogue: Catalogue | None = None,
    server: ApiServer | None = None,
    line: Callable[[ApiServer], InProcessTransport] = InProcessTransport,
) -> AsyncIterator[World]:
    """Run an operator on a new embedded cluster, or on one that has been used before.

    With ``placing``, ungated pods are bound and become ready. The operator, and nobody else, talks over ``line``.
    """
    runtime = Runtime.virtual(seed=7)
    fresh = server is None
    server = server or ApiServer(runtime)
    client = Client(InProcessTransport(server), runtime)
    async with server.running():
        if fresh:
            await client.create(NAMESPACE, {"metadata": {"name": "test"}})
            await install_crds(client)
            await client.create(NODE, {"metadata": {"name": "node-1"}, "status": {}})
        chosen = settings or Settings(profiles=SPINNEY)
        operator = Operator(Client(line(server), runtime), chosen, catalogue=catalogue)
        world = World(client, runtime, operator, Witness(), server)
        if not fresh:
            world.witness.notes.add("resumed")  # pods that were there before need not have been seen gated
        tasks = [asyncio.create_task(operator.run()), asyncio.create_task(follow(world))]
        if placing:
            tasks.append(asyncio.create_task(place_pods(world)))
        try:
            await operator.manager.wait_until_ready()
            yield world
            assert world.witness.violations == []
        finally:
            ended_by_itself = tasks[0].done()
            operator.stop()
            for task in tasks[1:]:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if ended_by_itself:
                await tasks[0]  # says why: a test that failed has failed because of it


given_a_world = opening(a_world)
"""Run a test with an operator on a cluster of its own."""


async def follow(world: World) -> None:
    """Let the witness see everything."""
    changes: asyncio.PriorityQueue[tuple[int, str, Any]] = asyncio.PriorityQueue()
    arrived = asyncio.Event()

    async def watch(kind: str, resource: Resource) -> None:
        async for event in world.client.watch(resource, world.namespace):
            changes.put_nowait((int(event.object["metadata"]["resourceVersion"]), kind, event))
            arrived.set()

    async def judge() -> None:
        while True:
            await arrived.wait()
            arrived.clear()
            await asyncio.sleep(0.001)  # all watches deliver what was committed at this instant before it is judged
            while not changes.empty():
                _, kind, event = changes.get_nowait()
                world.witness.writes += 1
                see[kind](event.type, event.object)

    see = {"gang": world.witness.saw_gang, "pod": world.witness.saw_pod, "clique": world.witness.saw_clique}
    await asyncio.gather(watch("clique", POD_CLIQUE), watch("gang", POD_GANG), watch("pod", POD), judge())


async def place_pods(world: World) -> None:
    """Bind ungated pods and report them ready, as far as the world lets them."""
    async for event in world.client.watch(POD, world.namespace, type=Pod):
        if event.type != "DELETED":
            await _advance(world, event.object)


async def _advance(world: World, pod: Pod) -> None:
    try:
        if pod.metadata.deleting:
            await world.client.delete(POD, pod.metadata.name, world.namespace, grace_period_seconds=0)
        elif not has_gate(pod) and not pod.spec.node_name and world.place(pod):
            await world.client.bind(world.namespace, pod.metadata.name, pod.metadata.uid, "node-1")
        elif pod.spec.node_name and not pod.is_true("Ready") and world.ready(pod):
            await world.client.patch(POD, pod.metadata.name, ready_status(), world.namespace, subresource="status")
    except KubeError:
        return


def ready_status() -> JSON:
    """Return the status of a pod that serves."""
    return {
        "status": {
            "phase": "Running",
            "conditions": [
                {"type": "PodScheduled", "status": "True"},
                {"type": "Ready", "status": "True"},
            ],
            "containerStatuses": [
                {"name": "main", "ready": True, "started": True, "restartCount": 0, "image": "", "imageID": ""}
            ],
        }
    }


def _alive(pod: JSON) -> bool:
    return "deletionTimestamp" not in pod["metadata"]


def _was_initialized(gang: JSON) -> bool:
    """Tell whether all pods of a gang have been there; one that scales out refers to each before its gate goes."""
    found = [each for each in gang.get("status", {}).get("conditions", ()) if each["type"] == "Initialized"]
    return any(each["status"] == "True" or each["reason"] == "PodsMissing" for each in found)


def _is_true(found: JSON, condition: str) -> bool:
    conditions = found.get("status", {}).get("conditions", ())
    return any(each["type"] == condition and each["status"] == "True" for each in conditions)


def _gated(pod: JSON) -> bool:
    return any(gate["name"] == marks.POD_GANG_GATE for gate in pod["spec"].get("schedulingGates", ()))


def _references(gang: JSON) -> set[str]:
    groups = gang["spec"].get("podgroups", ())
    return {reference["name"] for group in groups for reference in group.get("podReferences", ())}

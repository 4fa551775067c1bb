"""One storm: what users and machines do while everything goes wrong, and what must be there when it is over.

The parts are the ones that run in production: API server with its journal, simulated nodes, operator, grouper, both
schedulers and their binders. While it storms one call in ten fails, watches lag and break, processes and the server are
killed, wall clocks jump, nodes are lost and a plugin answers nonsense. After every single write the invariants of
:mod:`tests.e2e.invariants` hold; when it is calm again, everything that users asked for is there, and nothing else.
"""

import asyncio
import gc
import logging
import random
import tempfile
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import structlog

from spinney.api import labels as marks
from spinney.api.core import NAMESPACE, NODE, POD, Pod
from spinney.api.grove import (
    POD_CLIQUE,
    POD_CLIQUE_SCALING_GROUP,
    POD_CLIQUE_SET,
    PodClique,
    PodCliqueScalingGroup,
    PodCliqueSet,
)
from spinney.api.podgang import POD_GANG, PodGang
from spinney.api.resource import Resource
from spinney.api.struct import decode
from spinney.kube.client import Client
from spinney.kube.crds import install_crds
from spinney.kube.errors import ConnectionFailed, NotFound
from spinney.nodes import ClusterSpec, Fleet, NodeGroup
from spinney.nodes.node import Health
from spinney.nodes.spec import Heartbeats
from spinney.operator.operator import Operator
from spinney.runtime import run_virtual
from spinney.server.store import Collection, Event
from spinney.sim.embedded import Schedulers, StackOptions
from spinney.sim.transport import InProcessTransport
from spinney.testing.builders import a_clique, a_pod_clique_set, a_pod_spec, a_scaling_group
from tests.e2e.chronicle import KINDS, Happening
from tests.e2e.invariants import Replay
from tests.operator.storms import FAULTS, Weather
from tests.storms.hostile import with_hostile
from tests.storms.processes import Lives, MortalServer, a_runtime

SCHEDULERS = ("spinney-scheduler", "kai-scheduler", "volcano", "coscheduling", "default-scheduler")
QUEUE_LABEL = "kai.scheduler/queue"
NODES, GPUS = 8, 8
SETS, REPLICAS, COPIES = 3, 2, 3
MEMBERS = ("", "b", "bc")
"""The PodCliques of a set's scaling group; without any there is none."""
ACTS = (6, 14)
"""How much happens in a storm, at least and at most."""
CALM_SECONDS = 3600.0
"""How long everything may take to come to rest."""

_MAY_BE_LATE = ("which is closed",)
"""What a scheduler cannot know yet: a node that was closed a moment ago. The kubelet refuses such a pod."""

_COLLECTED_EVERY = 10
"""After how many storms a process looks for garbage; during a storm that would take a seventh of the time."""

T = TypeVar("T")


@dataclass(frozen=True)
class Outcome:
    """How a storm ended: what was wrong, and what happened in it."""

    seed: int
    violations: tuple[str, ...]
    happened: Counter[str]
    state: str
    """Everything that is there in the end, as text: a seed has one."""


@dataclass
class Wanted:
    """A set as users want it: a PodClique of two pods, and a scaling group of so many ``members``. Mutable."""

    scheduler: str
    replicas: int = 1
    members: str = "bc"
    image: int = 1
    copies: dict[int, int] = field(default_factory=dict)  # of the scaling group, where somebody scaled it

    def manifest(self, name: str) -> PodCliqueSet:
        """Return what is applied."""
        spec = a_pod_spec(scheduler=self.scheduler, image=f"registry.example/worker:{self.image}", gpus=1)
        cliques = [a_clique(each, 1 + (each == "a"), pod_spec=spec) for each in f"a{self.members}"]
        groups = [a_scaling_group("sg", list(self.members), 2, 1)] if self.members else []
        return a_pod_clique_set(name, cliques, groups, replicas=self.replicas, labels={QUEUE_LABEL: "team"})

    @property
    def pods(self) -> int:
        """Return how many pods that makes."""
        return sum(2 + len(self.members) * self.copies.get(i, 2) for i in range(self.replicas))


@dataclass
class StormReplay(Replay):
    """The invariants, less what nobody can know in time: that a pod was taken away, or a node closed, a moment ago."""

    seen: set[str] = field(default_factory=set)

    def take(self, each: Happening) -> None:
        """Judge one write."""
        if each.kind is Pod:
            self.seen.add(each.name)
        super().take(each)

    def rest(self, revision: int) -> None:
        """Judge a moment at which nothing is under way: no gang holds less than its minimum."""
        for name, gang in self.gangs.items():
            bound = self._bound(name)
            if bound and any(bound[group.name] < group.min_replicas for group in gang.spec.pod_groups):
                self._report(revision, f"gang {name} is part-bound: {dict(bound)}")

    def _check_complete(self, revision: int, gang: PodGang) -> None:
        for group in gang.spec.pod_groups:
            clique = self.cliques.get(group.name)
            wanted = (clique.spec.replicas or 0) if clique is not None else group.min_replicas
            known = [each.name for each in group.pod_references if each.name in self.seen]
            if len(known) < wanted:
                text = f"{gang.metadata.name} is Initialized and {group.name} has {len(known)} of {wanted} pods"
                self._report(revision, text)


@dataclass
class Judge:
    """Replays every commit, in order, as the server makes it. Mutable."""

    replay: StormReplay = field(default_factory=StormReplay)
    revision: int = 0

    def __call__(self, collection: Collection, event: Event) -> None:
        kind = _KIND_OF.get(collection.name)
        self.revision = event.record.revision
        if kind is not None and event.record.key.namespace in ("", "test"):
            found = decode(kind, event.record.raw)
            self.replay.take(Happening(self.revision, kind, gone=event.type == "DELETED", object=found))

    def found(self) -> list[str]:
        """Return what was violated."""
        return [each for each in self.replay.found if not each.endswith(_MAY_BE_LATE)]


_KIND_OF = {str(resource): kind for resource, kind in KINDS.items()}


class Story:
    """One storm over one cluster. Mutable."""

    def __init__(self, seed: int, directory: Path) -> None:
        self.seed = seed
        self.chance = random.Random(f"story {seed}")
        self.weather = Weather(random.Random(f"weather {seed}"))
        self.judge = Judge()
        self.server = MortalServer(a_runtime(seed, "server")[0], directory, self.judge)
        self.client = Client(InProcessTransport(self.server), a_runtime(seed, "user")[0])
        self.wanted: dict[str, Wanted] = {}
        self.nodes = [f"n{i}" for i in range(NODES)]
        self.ailing: set[str] = set()
        self.happened: Counter[str] = Counter()
        self.fleet: Fleet | None = None
        self.parts = (
            Lives("operator", seed, self.server, self.weather, self._operator),
            Lives("schedulers", seed, self.server, self.weather, self._schedulers),
            Lives("nodes", seed, self.server, Weather(random.Random(f"nodes {seed}")), self._fleet),
        )

    # -- the parts ---------------------------------------------------------------------------------------------------

    def _options(self) -> StackOptions:
        whole = StackOptions.whole(ClusterSpec())
        config, registry = with_hostile(whole.scheduler, self.weather)
        return replace(whole, scheduler=config, plugins=registry)

    def _operator(self, connect: Callable[[str], Client]) -> Operator:
        return Operator(connect("grove-operator"), self._options().operator)

    def _schedulers(self, connect: Callable[[str], Client]) -> Schedulers:
        return Schedulers(connect, self._options())

    def _fleet(self, connect: Callable[[str], Client]) -> Fleet:
        client = connect("spinney-nodes")
        groups = tuple(_node(name) for name in self.nodes)
        silent = Heartbeats(lease="0s", status="0s")
        self.fleet = Fleet(client, ClusterSpec(nodes=groups, heartbeats=silent), runtime=client.runtime)
        return self.fleet

    # -- the course of it --------------------------------------------------------------------------------------------

    async def run(self) -> Outcome:
        """Go through the storm and the calm after it."""
        await self.server.start()
        await self.client.create(NAMESPACE, {"metadata": {"name": "test"}})
        await install_crds(self.client)
        tasks = [asyncio.create_task(part.run(), name=part.name) for part in self.parts]
        telling = asyncio.create_task(self._tell())
        await asyncio.wait({telling, *tasks}, return_when=asyncio.FIRST_COMPLETED)
        violations: list[str] = []
        if telling.done() and telling.exception() is None:
            violations += telling.result()
        for task in (telling, *tasks):
            if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                violations.append(f"{task.get_name()} failed: {type(error).__name__}: {error}")
            task.cancel()
        await asyncio.gather(telling, *tasks, return_exceptions=True)
        state = self._state()
        await self.server.kill()
        for part in self.parts:
            self.happened[f"{part.name} killed"] += part.kills
            self.happened[f"{part.name} ended"] += part.ends
        self.happened["server killed"] += self.server.kills - 1
        self.happened.update(self.weather.faults)
        self.happened["watch broken"] = self.weather.breaks
        return Outcome(self.seed, (*self.judge.found(), *violations), self.happened, state)

    async def _tell(self) -> list[str]:
        await asyncio.sleep(5)
        self.weather.rate = FAULTS
        for _ in range(self.chance.randint(*ACTS)):
            act = self.chance.choice(self._acts())
            self.happened[act.__name__.removeprefix("_")] += 1
            await act()
            await asyncio.sleep(self.chance.choice([0.0, 0.3, 2.0, 10.0]) * self.chance.random())
        self.weather.rate = 0.0
        await self._heal()
        return await self._at_rest()

    def _acts(self) -> list[Callable[[], Awaitable[None]]]:
        acts: list[Callable[[], Awaitable[None]]] = [
            self._kill_operator,
            self._kill_schedulers,
            self._kill_server,
            self._jump,
            self._lose_pod,
        ]
        acts += [self._fail_node, self._replace_node, self._close_node]
        if len(self.wanted) < SETS:
            acts += [self._create] * 5
        if self.wanted:
            acts += [self._scale_set, self._scale_group, self._update, self._delete]
        return acts

    # -- what users do -----------------------------------------------------------------------------------------------

    async def _create(self) -> None:
        name = next(each for each in ("x", "y", "z", "u", "v", "w") if each not in self.wanted)
        scheduler, replicas, members = (self.chance.choice(each) for each in (SCHEDULERS, (1, REPLICAS), MEMBERS))
        wanted = self.wanted[name] = Wanted(scheduler, replicas, members)
        await self._insist(lambda: self._apply(name, wanted))

    async def _scale_set(self) -> None:
        name, wanted = self._any()
        wanted.replicas = self.chance.randint(0, REPLICAS)
        wanted.copies = {i: copies for i, copies in wanted.copies.items() if i < wanted.replicas}
        await self._insist(lambda: self._apply(name, wanted))

    async def _scale_group(self) -> None:
        name, wanted = self._any()
        if not wanted.replicas or not wanted.members:
            return
        i, copies = self.chance.randrange(wanted.replicas), self.chance.randint(1, COPIES)
        try:
            await self._insist(lambda: self._resize(f"{name}-{i}-sg", copies))
        except NotFound:
            return  # not made yet: it will have what the template says
        wanted.copies[i] = copies

    async def _update(self) -> None:
        name, wanted = self._any()
        wanted.image += 1
        await self._insist(lambda: self._apply(name, wanted))

    async def _delete(self) -> None:
        name, _ = self._any()
        del self.wanted[name]
        await self._insist(lambda: _unless_gone(self.client.delete(POD_CLIQUE_SET, name, "test")))

    def _any(self) -> tuple[str, Wanted]:
        name = self.chance.choice(sorted(self.wanted))
        return name, self.wanted[name]

    async def _apply(self, name: str, wanted: Wanted) -> None:
        await self.client.apply(POD_CLIQUE_SET, wanted.manifest(name), field_manager="user", force=True)

    async def _resize(self, group: str, copies: int) -> None:
        await self.client.patch(POD_CLIQUE_SCALING_GROUP, group, {"spec": {"replicas": copies}}, "test")

    # -- what happens to machines ------------------------------------------------------------------------------------

    async def _kill_operator(self) -> None:
        self.parts[0].kill()

    async def _kill_schedulers(self) -> None:
        self.parts[1].kill()

    async def _kill_server(self) -> None:
        await self.server.kill()
        await asyncio.sleep(self.chance.random() * 5)
        await self.server.start()

    async def _jump(self) -> None:
        part = self.chance.choice(self.parts)
        part.clock.offset = timedelta(seconds=self.chance.choice([-3600, -60, -1, 1, 60, 3600]))

    async def _lose_pod(self) -> None:
        pods = sorted(self.judge.replay.pods)
        if pods:
            name = self.chance.choice(pods)
            await self._insist(lambda: _unless_gone(self.client.delete(POD, name, "test", grace_period_seconds=0)))

    async def _fail_node(self) -> None:
        name = self.chance.choice(self.nodes)
        self.ailing.add(name)
        await self._on_nodes(lambda fleet: fleet.fail(name, health=self.chance.choice(_UNWELL)))

    async def _close_node(self) -> None:
        name = self.chance.choice(self.nodes)
        self.ailing.add(name)
        await self._on_nodes(lambda fleet: fleet.cordon(name))

    async def _replace_node(self) -> None:
        index = self.chance.randrange(len(self.nodes))
        gone, come = self.nodes[index], f"n{len(self.nodes) + self.happened['replace_node']}"
        self.nodes[index] = come
        self.ailing.discard(gone)
        await self._on_nodes(lambda fleet: fleet.remove(gone))
        await self._insist(lambda: _unless_gone(self.client.delete(NODE, gone)))  # where the fleet was interrupted
        await self._on_nodes(lambda fleet: _joined(fleet, come))

    async def _on_nodes(self, act: Callable[[Fleet], Awaitable[object]]) -> None:
        """Do something to the nodes, once they are there; what is done already need not be done again."""

        async def once() -> None:
            assert self.fleet is not None, "the nodes run"
            await self.fleet.wait_until_ready()
            try:
                await act(self.fleet)
            except (LookupError, NotFound):
                return

        await self._insist(once)

    async def _insist(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask until there is an answer: a server that is down comes back."""
        while True:
            try:
                return await ask()
            except ConnectionFailed:
                await asyncio.sleep(0.5)

    # -- the calm after it -------------------------------------------------------------------------------------------

    async def _heal(self) -> None:
        for part in self.parts:
            part.clock.offset = timedelta()
        for name in sorted(self.ailing):
            await self._on_nodes(lambda fleet, name=name: fleet.recover(name))  # type: ignore[misc]
            await self._on_nodes(lambda fleet, name=name: fleet.cordon(name, unschedulable=False))  # type: ignore[misc]

    async def _at_rest(self) -> list[str]:
        """Wait until everything is as wanted, or say what is not."""
        missing: list[str] = []
        for _ in range(int(CALM_SECONDS / 30)):
            await asyncio.sleep(30)
            missing = self._missing()
            if not missing:
                await asyncio.sleep(60)  # and it stays so
                missing = self._missing()
                break
        self.judge.replay.rest(self.judge.revision)
        return missing

    def _missing(self) -> list[str]:
        """Return what is not as wanted."""
        found: list[str] = []
        pods = self._all(POD, Pod)
        sets = self._all(POD_CLIQUE_SET, PodCliqueSet)
        if sorted(sets) != sorted(self.wanted):
            found.append(f"there are sets {sorted(sets)}, wanted {sorted(self.wanted)}")
        for name, wanted in sorted(self.wanted.items()):
            mine = [pod for pod in pods.values() if pod.metadata.labels.get(marks.PART_OF) == name]
            unready = sorted(pod.metadata.name for pod in mine if not pod.is_true("Ready") or pod.metadata.deleting)
            if len(mine) != wanted.pods or unready:
                found.append(f"set {name} ({wanted}) has {len(mine)} pods of {wanted.pods}, not ready: {unready}")
            images = {container.image for pod in mine for container in pod.spec.containers}
            if mine and images != {f"registry.example/worker:{wanted.image}"}:
                found.append(f"set {name} ({wanted}) runs {sorted(map(str, images))}")
            if name in sets and sets[name].status.available_replicas != wanted.replicas:
                found.append(f"set {name} has {sets[name].status.available_replicas} of {wanted.replicas} available")
        for resource, kind in _OWNED.items():
            left = [n for n, each in self._all(resource, kind).items() if _set_of(each) not in self.wanted]
            if left:
                found.append(f"{resource.kind} of sets that are gone: {sorted(left)}")
        return found

    def _all(self, resource: Resource, kind: type[T]) -> dict[str, T]:
        if self.server.server is None:
            return {}
        collection = self.server.server.context.store.collection(str(resource))
        records = collection.records("test") if collection is not None else ()
        return {record.key.name: decode(kind, record.raw) for record in records}

    def _state(self) -> str:
        """Return all that matters of what is there."""
        pods = self._all(POD, Pod).values()
        return f"{self.judge.revision} " + " ".join(
            sorted(f"{pod.metadata.name}@{pod.spec.node_name}:{pod.metadata.uid}" for pod in pods)
        )


_UNWELL = (Health.UNREACHABLE, Health.NOT_READY)
_OWNED: dict[Resource, type[Any]] = {
    POD: Pod,
    POD_CLIQUE: PodClique,
    POD_CLIQUE_SCALING_GROUP: PodCliqueScalingGroup,
    POD_GANG: PodGang,
}


def _set_of(found: Any) -> str:
    name: str = found.metadata.labels.get(marks.PART_OF, "")
    return name


def _node(name: str) -> NodeGroup:
    return NodeGroup(name=name, capacity={"cpu": 64, "memory": "512Gi", "nvidia.com/gpu": GPUS})


async def _joined(fleet: Fleet, name: str) -> None:
    if name not in fleet.names:
        await fleet.add(_node(name))


async def _unless_gone(deletion: Awaitable[object]) -> None:
    try:
        await deletion
    except NotFound:
        return


def storm(seed: int) -> Outcome:
    """Go through the storm of a seed."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="spinney-storm-", dir=memory if memory.is_dir() else None) as directory:
        return run_virtual(_run(seed, Path(directory)))


def one_of_many(seed: int) -> Outcome:
    """Go through a storm in a process that goes through many: without logs, and whatever goes wrong is its outcome."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    gc.disable()
    try:
        return storm(seed)
    except Exception:  # noqa: BLE001 - told with the seed, and the others go on
        return Outcome(seed, (traceback.format_exc(),), Counter(), "")
    finally:
        gc.enable()
        if seed % _COLLECTED_EVERY == 0:
            gc.collect()


async def _run(seed: int, directory: Path) -> Outcome:
    return await Story(seed, directory).run()

"""One storm: what users and machines do while everything goes wrong, and what must be there when it is over.

The parts are the ones that run in production: API server with its journal, simulated nodes, operator, grouper, both
schedulers and their binders, and the controllers of Kubernetes' own workloads. In some storms operator and schedulers
have a replica that stands by, in some the operator's webhooks review what users write. While it storms one call in ten
fails, watches lag and break, processes and the server are killed, wall clocks jump, nodes are lost and plugins of every
kind raise and answer nonsense. After every single write the invariants of :mod:`tests.e2e.invariants` hold; when it is
calm again, everything that users asked for is there, and nothing else.
"""

import asyncio
import gc
import logging
import random
import tempfile
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import structlog

from spinney.api.core import NAMESPACE, NODE, POD
from spinney.api.grove import (
    POD_CLIQUE_SCALING_GROUP,
    POD_CLIQUE_SET,
)
from spinney.api.volcano import QUEUE as VOLCANO_QUEUE
from spinney.kube.client import Client
from spinney.kube.crds import install_crds
from spinney.kube.errors import ConnectionFailed, InternalError, NotFound
from spinney.kube.guarding import fenced
from spinney.kube.lease import LeaderElection, LeaseTimes
from spinney.kube.manager import Manager
from spinney.kube.webhooks.server import ServicePlace
from spinney.nodes import ClusterSpec, Fleet, NodeGroup
from spinney.nodes.node import Health
from spinney.nodes.spec import Heartbeats
from spinney.operator.admission.webhooks import configurations
from spinney.operator.operator import Operator
from spinney.runtime import run_virtual
from spinney.sim.embedded.stack import Schedulers, StackOptions
from spinney.sim.embedded.transport import InProcessTransport
from spinney.workloads import WorkloadControllers
from spinney.workloads.objects import JOB
from tests.operator.storms import FAULTS, Weather
from tests.storms.hostile import Hostility, hostile_backends, with_hostile
from tests.storms.judging import Judge
from tests.storms.processes import Connect, Lives, MortalServer, Part, Reviewers, a_runtime
from tests.storms.remains import Remains
from tests.storms.wanted import KINDS, Wanted, WantedWorkload

SCHEDULERS = ("spinney-scheduler", "kai-scheduler", "volcano", "coscheduling", "default-scheduler")
NODES, GPUS = 8, 8
SETS, REPLICAS, COPIES, WORKLOADS = 3, 2, 3, 2
STANDBY, REVIEWED = 0.3, 0.5
"""In how many storms there is a replica that stands by, and in how many what users write is reviewed."""
LEASE = LeaseTimes(lease_duration=15.0, renew_deadline=10.0, retry_period=5.0)
MEMBERS = ("", "b", "bc")
"""The PodCliques of a set's scaling group; without any there is none."""
ACTS = (6, 14)
"""How much happens in a storm, at least and at most."""
CALM_SECONDS = 3600.0
"""How long everything may take to come to rest."""

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

    @property
    def digest(self) -> str:
        """Return what two storms share that went the same way."""
        return sha256(repr((self.violations, sorted(self.happened.items()), self.state)).encode()).hexdigest()[:16]


class Story:
    """One storm over one cluster. Mutable."""

    def __init__(self, seed: int, directory: Path) -> None:
        self.seed = seed
        self.chance = random.Random(f"story {seed}")
        self.weather = Weather(random.Random(f"weather {seed}"))
        self.hostility = Hostility(self.weather)
        self.reviewed = self.chance.random() < REVIEWED
        self.judge = Judge()
        self.reviewers = Reviewers(self.weather)
        self.server = MortalServer(a_runtime(seed, "server")[0], directory, self.judge, self.reviewers)
        self.remains = Remains(self.server)
        self.client = Client(InProcessTransport(self.server), a_runtime(seed, "user")[0])
        self.wanted: dict[str, Wanted] = {}
        self.workloads: dict[str, WantedWorkload] = {}
        self.nodes = [f"n{i}" for i in range(NODES)]
        self.ailing: set[str] = set()
        self.happened: Counter[str] = Counter()
        self.fleet: Fleet | None = None
        self.elections: dict[str, LeaderElection] = {}
        self.elected = self.chance.random() < STANDBY
        self.operators = self._replicas("operator", self._operator)
        self.schedulers = self._replicas("schedulers", self._schedulers)
        self.controllers = self._lives(
            "workloads", lambda connect: WorkloadControllers(connect("kube-controller-manager"))
        )
        undisturbed = Weather(random.Random(f"nodes {seed}"))
        nodes = Lives("nodes", seed, self.server, undisturbed, self._fleet)
        self.parts = (*self.operators, *self.schedulers, self.controllers, nodes)

    # -- the parts ---------------------------------------------------------------------------------------------------

    def _lives(self, name: str, make: Callable[[Connect], Part]) -> Lives:
        return Lives(name, self.seed, self.server, self.weather, make)

    def _replicas(self, component: str, make: Callable[[str, Connect], Part]) -> list[Lives]:
        names = [f"{component} {i}" for i in range(1 + self.elected)]
        return [self._lives(name, partial(make, name)) for name in names]

    def _operator(self, name: str, connect: Connect) -> Operator:
        client = connect("grove-operator")
        settings = StackOptions.whole(ClusterSpec()).operator
        manager = Manager(client, client.runtime, election=self._election(name, client))
        backends = hostile_backends(settings.profiles, self.hostility)
        operator = Operator(client, settings, manager=manager, catalogue=backends)
        self.reviewers.attach(operator)
        return operator

    def _schedulers(self, name: str, connect: Connect) -> Schedulers:
        options = with_hostile(StackOptions.whole(ClusterSpec()), self.hostility)
        election = self._election(name, connect("spinney-scheduler"))
        if election is None:
            return Schedulers(connect, options)
        return Schedulers(lambda each: fenced(connect(each), election), options, election=election)

    def _election(self, name: str, client: Client) -> LeaderElection | None:
        """Return the part of one life in the election of its component, where it has a replica."""
        if not self.elected:
            return None
        runtime, component = client.runtime, name.split(maxsplit=1)[0]
        election = LeaderElection(
            client, component, "kube-system", identity=f"{name} {runtime.uid()}", runtime=runtime, times=LEASE
        )
        self.elections[name] = election
        return election

    def _fleet(self, connect: Connect) -> Fleet:
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
        if self.reviewed:
            for resource, manifest in configurations(_SERVICE, b"", authorizer=False):
                await self.client.create(resource, manifest)
            await self.client.create(VOLCANO_QUEUE, _OPEN)  # its backend asks for it
            await self.client.patch(VOLCANO_QUEUE, "default", {"status": {"state": "Open"}}, subresource="status")
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
        state = f"{self.judge.revision} {self.remains.state()}"
        await self.server.kill()
        for part in self.parts:
            component = part.name.split()[0]
            self.happened[f"{component} killed"] += part.kills
            self.happened[f"{component} ended"] += part.ends
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
        if len(self.workloads) < WORKLOADS:
            acts.append(self._create_workload)
        if self.workloads:
            acts += [self._kill_controllers, self._scale_workload, self._delete_workload]
        acts += [self._fail_node, self._replace_node, self._close_node]
        if len(self.wanted) < SETS:
            acts += [self._create] * 5
        if self.wanted:
            acts += [self._scale_set, self._scale_group, self._update, self._delete]
        return acts

    # -- what users do -----------------------------------------------------------------------------------------------

    async def _create(self) -> None:
        name = next(each for each in ("x", "y", "z", "u", "v", "w") if each not in self.wanted)
        choose = self.chance.choice
        wanted = self.wanted[name] = Wanted(choose(SCHEDULERS), choose((1, REPLICAS)), choose(MEMBERS))
        await self._insist(lambda: self._apply(name, wanted))

    async def _scale_set(self) -> None:
        name, wanted = self._any()
        wanted.scale(self.chance.randint(0, REPLICAS))
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
        wanted.scale_group(i, copies)

    async def _update(self) -> None:
        name, wanted = self._any()
        wanted.image += 1
        await self._insist(lambda: self._apply(name, wanted))

    async def _delete(self) -> None:
        name, _ = self._any()
        del self.wanted[name]
        await self._insist(lambda: _unless_gone(self.client.delete(POD_CLIQUE_SET, name, "test")))

    async def _create_workload(self) -> None:
        name = next(each for each in ("j", "k") if each not in self.workloads)
        kind = self.chance.choice(KINDS)
        self.happened[kind.kind] += 1
        self.workloads[name] = WantedWorkload(kind, self.chance.choice(SCHEDULERS), self.chance.randint(1, 3))
        await self._apply_workload(name)

    async def _scale_workload(self) -> None:
        name = self.chance.choice(sorted(self.workloads))
        if self.workloads[name].resource is not JOB:
            self.workloads[name].pods = self.chance.randint(0, 3)
            await self._apply_workload(name)

    async def _delete_workload(self) -> None:
        name = self.chance.choice(sorted(self.workloads))
        resource = self.workloads.pop(name).resource
        delete = partial(self.client.delete, resource, name, "test", propagation_policy="Background")
        await self._insist(lambda: _unless_gone(delete()))

    async def _apply_workload(self, name: str) -> None:
        wanted = self.workloads[name]
        manifest = wanted.manifest(name)
        await self._insist(lambda: self.client.apply(wanted.resource, manifest, field_manager="user", force=True))

    def _any(self) -> tuple[str, Wanted]:
        name = self.chance.choice(sorted(self.wanted))
        return name, self.wanted[name]

    async def _apply(self, name: str, wanted: Wanted) -> None:
        await self.client.apply(POD_CLIQUE_SET, wanted.manifest(name), field_manager="user", force=True)

    async def _resize(self, group: str, copies: int) -> None:
        await self.client.patch(POD_CLIQUE_SCALING_GROUP, group, {"spec": {"replicas": copies}}, "test")

    # -- what happens to machines ------------------------------------------------------------------------------------

    async def _kill_operator(self) -> None:
        self._kill(self.operators)

    async def _kill_schedulers(self) -> None:
        self._kill(self.schedulers)

    async def _kill_controllers(self) -> None:
        self.controllers.kill()

    def _kill(self, replicas: list[Lives]) -> None:
        """Kill the replica that leads; where that is open, any."""
        leading = [each for each in replicas if self.elected and self.elections[each.name].leading]
        self.happened["leader killed"] += len(leading)
        self.chance.choice(leading or replicas).kill()

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
        """Ask until there is an answer: a server that is down comes back, and so does who reviews what is written."""
        while True:
            try:
                return await ask()
            except ConnectionFailed:
                await asyncio.sleep(0.5)
            except InternalError as error:
                if not self.reviewed:
                    raise
                self.happened["not reviewed" if "webhook" in str(error) else "refused"] += 1
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
            missing = self.remains.missing(self.wanted, self.workloads)
            if not missing:
                await asyncio.sleep(60)  # and it stays so
                missing = self.remains.missing(self.wanted, self.workloads)
                break
        self.judge.replay.rest(self.judge.revision)
        return missing


_UNWELL = (Health.UNREACHABLE, Health.NOT_READY)
_OPEN = {"metadata": {"name": "default"}}
_SERVICE = ServicePlace("grove-operator", "kube-system")


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
    """Go through the storm of a seed; no garbage is looked for meanwhile, since what it ends would end at any time."""
    memory = Path("/dev/shm")
    gc.disable()
    try:
        with tempfile.TemporaryDirectory(prefix="spinney-storm-", dir=memory if memory.is_dir() else None) as directory:
            return run_virtual(_run(seed, Path(directory)))
    finally:
        gc.enable()


def one_of_many(seed: int) -> Outcome:
    """Go through a storm in a process that goes through many: without logs, and whatever goes wrong is its outcome."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    if seed % _COLLECTED_EVERY == 0:
        gc.collect()
    try:
        return storm(seed)
    except Exception:  # noqa: BLE001 - told with the seed, and the others go on
        return Outcome(seed, (traceback.format_exc(),), Counter(), "")


async def _run(seed: int, directory: Path) -> Outcome:
    return await Story(seed, directory).run()

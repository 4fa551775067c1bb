"""What must hold whatever happens: pods and nodes come and go, writes fail, the scheduler stops or dies half-way."""

import asyncio
import os
import random
from collections import Counter

import pytest

from spinney.api.core import NAMESPACE, NODE
from spinney.api.coscheduling import POD_GROUP
from spinney.api.quantity import milli
from spinney.api.workload_v1beta1 import COMPOSITE_POD_GROUP
from spinney.api.workload_v1beta1 import POD_GROUP as NATIVE_GROUP
from spinney.kube.client import Client
from spinney.kube.crds import install_crds
from spinney.kube.errors import ConnectionFailed, NotFound
from spinney.kube.guarding import GuardedTransport
from spinney.kube.retrying import SAFE_METHODS
from spinney.kube.transport import Request, Response, Transport
from spinney.runtime import Runtime, run_virtual
from spinney.server import ApiServer
from spinney.sim.embedded.transport import InProcessTransport

from .test_composites import a_composite, a_part
from .test_native_gangs import a_native_pod
from .world import World, a_node, a_pod, configured, followed

CPUS = 4
URGENT = "urgent"
LIVES = int(os.environ.get("SPINNEY_LIVES", "3"))
"""How many random lives of each kind are lived through; more find what is rare."""


class Weather(GuardedTransport):
    """Between a scheduler and its API server: writes fail, answers are lost, and in the end the line is cut."""

    def __init__(self, transport: Transport, chance: random.Random, *, failing: float) -> None:
        super().__init__(transport)
        self._chance = chance
        self._failing = failing
        self.cut = False

    def admit(self, request: Request) -> Request:
        """Let nothing through once the line is cut, and now and then nothing before."""
        if self.cut or self._chance.random() < self._failing / 2:
            raise ConnectionFailed(f"{request} was not sent")
        return request

    async def request(self, request: Request) -> Response:
        """Send a request; now and then the answer to a write is lost."""
        answer = await super().request(request)
        if request.method not in SAFE_METHODS and self._chance.random() < self._failing / 2:
            raise ConnectionFailed(f"{request} was not answered")
        return answer


class Life:
    """A cluster in which things happen at random, and what may never be seen in it. Mutable."""

    def __init__(self, world: World, chance: random.Random) -> None:
        self.world = world
        self.chance = chance
        self.nodes: set[str] = set()
        self.minimums: dict[str, int] = {}
        self.sizes: dict[str, int] = {}
        self.jobs: dict[str, dict[str, int]] = {}
        """Composites: the minimum of each of their groups."""
        self.disturbed: set[str] = set()
        self.number = 0
        world.watch = lambda world: self.check()

    def check(self) -> None:
        """Check what every revision must show: no node is promised more than it has."""
        used: Counter[str] = Counter()
        for pod in self.world.pods.values():
            if pod.spec.node_name and not pod.terminal:
                used[pod.spec.node_name] += sum(milli(each.resources.requests["cpu"]) for each in pod.spec.containers)
        for node, amount in used.items():
            assert amount <= CPUS * 1000, f"{node} was given {amount}m of {CPUS} cpus"

    def note_torn(self) -> None:
        """Note the gangs that a scheduler that died left bound in part: its successor may have no room for the rest."""
        for group, minimum in self.minimums.items():
            if 0 < len(self.world.bound(f"{group}-")) < minimum:
                self.disturbed.add(group)
        for job, parts in self.jobs.items():
            if self._is_torn(parts):
                self.disturbed.add(job)

    def check_gangs(self) -> None:
        """Check what must hold at rest: no gang that nobody disturbed is bound in part."""
        for group, minimum in self.minimums.items():
            bound = len(self.world.bound(f"{group}-"))
            lost = len(self.members(group)) < self.sizes[group]  # deleted by us, or by preemption
            if group not in self.disturbed and not lost:
                assert bound == 0 or bound >= minimum, f"{group}: {bound} bound of at least {minimum}"
        for job, parts in self.jobs.items():
            lost = any(len(self.members(part)) < self.sizes[part] for part in parts)
            assert lost or job in self.disturbed or not self._is_torn(parts), f"{job} is bound in part: {parts}"

    def _is_torn(self, parts: dict[str, int]) -> bool:
        bound = {part: len(self.world.bound(f"{part}-")) for part in parts}
        return any(bound.values()) and any(bound[part] < minimum for part, minimum in parts.items())

    def members(self, group: str) -> list[str]:
        """Return the pods of a group that are there."""
        return [name for name in self.world.pods if name.startswith(f"{group}-")]

    async def step(self) -> None:
        """Have one thing happen."""
        usual = [self.a_gang, self.a_gang, self.a_single, self.a_node, self.a_loss, self.an_end]
        happen = self.chance.choice([*usual, self.a_job, self.another_minimum, self.another_object])
        await happen()
        if self.chance.random() < 0.3:
            await asyncio.sleep(self.chance.choice([0.0, 0.01, 1.0, 15.0]))

    async def a_gang(self) -> None:
        self.number += 1
        name, size = f"g{self.number}", self.chance.randint(1, 6)
        self.minimums[name] = minimum = self.chance.randint(1, size)
        self.sizes[name] = size
        await self.world.group(name, minimum)
        cpu, priority = self.chance.choice(["500m", "1", "2"]), self._priority()
        await self.world.create(
            *(a_pod(f"{name}-{index}", group=name, cpu=cpu, priority_class=priority) for index in range(size))
        )

    async def a_job(self) -> None:
        """Create a composite of two groups, which need one another, in any order."""
        self.number += 1
        job = f"j{self.number}"
        self.jobs[job] = parts = {f"{job}{part}": self.chance.randint(1, 2) for part in "ab"}
        objects = [(COMPOSITE_POD_GROUP, a_composite(job, 2))]
        objects += [(NATIVE_GROUP, a_part(part, minimum, job)) for part, minimum in parts.items()]
        self.chance.shuffle(objects)
        for resource, each in objects:
            await self.world.client.create(resource, each, self.world.namespace)
            await asyncio.sleep(self.chance.choice([0.0, 0.0, 2.0]))
        for part, minimum in parts.items():
            self.sizes[part] = self.chance.randint(minimum, 3)
            await self.world.create(*(a_native_pod(f"{part}-{number}", part) for number in range(self.sizes[part])))

    async def a_single(self) -> None:
        self.number += 1
        cpu = self.chance.choice(["500m", "3"])
        await self.world.create(a_pod(f"s{self.number}", cpu=cpu, priority_class=self._priority()))

    def _priority(self) -> str:
        return self.chance.choice(["", "", "", URGENT])

    async def another_minimum(self) -> None:
        """Ask for more or fewer members of a group than before."""
        if self.minimums:
            name = self.chance.choice(sorted(self.minimums))
            minimum = self.chance.randint(1, self.sizes[name] + 1)
            if minimum > self.minimums[name]:
                self.disturbed.add(name)
            self.minimums[name] = minimum
            patch = {"spec": {"minMember": minimum}}
            await self.world.client.patch(POD_GROUP, name, patch, self.world.namespace)

    async def another_object(self) -> None:
        """Delete a PodGroup, and make it again after a while."""
        if self.minimums:
            name = self.chance.choice(sorted(self.minimums))
            await self.world.client.delete(POD_GROUP, name, self.world.namespace)
            await asyncio.sleep(self.chance.choice([0.0, 0.01, 8.0]))
            await self.world.group(name, self.minimums[name])

    async def a_node(self) -> None:
        self.number += 1
        if len(self.nodes) < 4:
            self.nodes.add(f"n{self.number}")
            await self.world.nodes(a_node(f"n{self.number}", cpu=str(CPUS)))

    async def a_loss(self) -> None:
        """Cordon a node, or take it away with its pods, as a node lifecycle controller would."""
        if not self.nodes:
            return
        node = self.chance.choice(sorted(self.nodes))
        if self.chance.random() < 0.5:
            unschedulable = self.chance.random() < 0.5
            await self.world.client.patch(NODE, node, {"spec": {"unschedulable": unschedulable}})
            return
        self.nodes.discard(node)
        await self.world.client.delete(NODE, node)
        await asyncio.sleep(0)
        for name in sorted(name for name, pod in self.world.pods.items() if pod.spec.node_name == node):
            await self._delete(name)

    async def an_end(self) -> None:
        """Delete some pod."""
        if self.world.pods:
            await self._delete(self.chance.choice(sorted(self.world.pods)))

    async def _delete(self, name: str) -> None:
        self.disturbed.add(name.split("-", maxsplit=1)[0])
        try:
            await self.world.delete(name)
        except NotFound:
            return

    async def lift(self) -> None:
        """Make room for everything that is left."""
        for node in sorted(self.nodes):
            await self.world.client.patch(NODE, node, {"spec": {"unschedulable": False}})
        for _ in range(30):
            self.number += 1
            await self.world.nodes(a_node(f"n{self.number}", cpu=str(CPUS)))


async def live(seed: int, *, failing: float = 0.0, dying: bool = False) -> list[str]:
    """Live through some churn with restarts; return where every pod is in the end."""
    runtime = Runtime.virtual(seed)
    server = ApiServer(runtime)
    chance = random.Random(seed)
    async with server.running():
        client = Client(InProcessTransport(server), runtime)
        await client.create(NAMESPACE, {"metadata": {"name": "test"}})
        await install_crds(client)
        async with followed(client, runtime, "test") as world:
            world.configuration = configured(podGroupBackoffSeconds=2)
            await world.priority(URGENT, 1000)
            life = Life(world, chance)
            for _ in range(3):
                world.transport = weather = Weather(client.transport, random.Random(chance.random()), failing=failing)
                async with world.scheduling():
                    for _ in range(15):
                        await life.step()
                    if chance.random() < 0.5:
                        await asyncio.sleep(chance.choice([0.05, 30.0]))
                    weather.cut = dying
                life.note_torn()
            world.transport = None
            async with world.scheduling():
                await asyncio.sleep(30)
                life.check_gangs()
                await life.lift()
                await asyncio.sleep(120)
                life.check_gangs()
                _everything_that_can_run_does(world, life)
            groups = await client.list(POD_GROUP, "test")
            assert len(groups.items) == len(life.minimums)
            return sorted(f"{name} {world.node_of(name)}" for name in world.pods)


def _everything_that_can_run_does(world: World, life: Life) -> None:
    for group, minimum in life.minimums.items():
        members = life.members(group)
        if len(members) >= minimum:
            assert len(world.bound(f"{group}-")) == len(members), f"{group} has room and does not run"
    for parts in life.jobs.values():
        if all(len(life.members(part)) >= minimum for part, minimum in parts.items()):
            for part in parts:
                assert len(world.bound(f"{part}-")) == len(life.members(part)), f"{part} has room and does not run"
    singles = [name for name in world.pods if name.startswith("s")]
    assert world.bound("s") == sorted(singles)


@pytest.mark.parametrize("seed", range(LIVES))
def test_invariants_hold_under_churn_and_restarts(seed: int) -> None:
    """No node is over-committed at any revision, no gang is left bound in part, and what can run does in the end."""
    run_virtual(live(seed))


@pytest.mark.parametrize("seed", range(1000, 1000 + LIVES))
def test_invariants_hold_when_writes_fail_and_schedulers_die(seed: int) -> None:
    """The same when writes fail, answers are lost, and a scheduler dies without a word: its successor sets it right."""
    run_virtual(live(seed, failing=0.1, dying=True))


def test_a_seed_replays_a_life() -> None:
    """The same seed gives the same placements: every decision is deterministic."""
    assert run_virtual(live(3)) == run_virtual(live(3))

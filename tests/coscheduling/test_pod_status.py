"""What a pending pod's status says: in the order in which it was meant, and never after the pod was bound."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from spinney.api.core import POD, Node, Pod
from spinney.coscheduling.framework import (
    SUCCESS,
    Code,
    CycleState,
    FrameworkPlugin,
    FrameworkRegistry,
    NodeFilter,
    Permit,
    PreBind,
    PreEnqueue,
    Status,
)
from spinney.coscheduling.plugins import BUILT_IN
from spinney.coscheduling.process.configuration import parse_configuration
from spinney.kube.guarding import GuardedTransport
from spinney.kube.transport import Request, Response
from tests.conftest import Cluster

from .bench import Bench
from .bench import a_node as a_bench_node
from .bench import a_pod as a_bench_pod
from .world import SCHEDULER, World, a_node, a_pod, a_world

pytestmark = pytest.mark.parametrize("cluster_name", ["embedded"], indirect=True)


class SlowPatches(GuardedTransport):
    """Holds every patch of a pod until told, and notes the writes about pods in the order in which they were made."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster.client.transport)
        self.may_pass = asyncio.Event()
        self.writes: list[str] = []

    def admit(self, request: Request) -> Request:
        """Allow everything."""
        return request

    async def request(self, request: Request) -> Response:
        """Send a request, a patch only when patches may pass."""
        if request.method == "PATCH" and "/pods/" in request.path:
            await self.may_pass.wait()
        answer = await super().request(request)
        if request.method != "GET" and "/pods/" in request.path:
            self.writes.append(f"{request.method} {request.path.rpartition('/')[2]}")
        return answer


async def test_no_condition_lands_after_the_bind(cluster: Cluster) -> None:
    """A pod that gets room while it is being said that it has none is bound after that was said, not before."""
    async with a_world(cluster) as world:
        slow = SlowPatches(cluster)
        world.transport = slow
        async with world.scheduling():
            await world.create(a_pod("p"))
            await world.settle(2)
            await world.nodes(a_node("n1"))
            await world.settle(5)
            assert slow.writes == []
            slow.may_pass.set()
            await world.until(lambda: world.node_of("p") == "n1")
            await world.settle(5)
        assert slow.writes == ["PATCH status", "POST binding"]
        assert world.pods["p"].is_true("PodScheduled")


@asynccontextmanager
async def a_world_with(cluster: Cluster, point: str, plugin: type[FrameworkPlugin]) -> AsyncIterator[World]:
    """Yield a world that is scheduled with a plugin more."""
    registry = FrameworkRegistry.installed(BUILT_IN)
    registry.register(plugin.name, plugin)
    plugins = {point: {"enabled": [{"name": plugin.name}]}}
    configuration = parse_configuration({"profiles": [{"schedulerName": SCHEDULER, "plugins": plugins}]})
    async with a_world(cluster) as world, world.scheduling(configuration, registry=registry):
        yield world


async def what_a_pod_says(world: World) -> tuple[str, str]:
    """Return message and reason of a pod for which there would be room."""
    await world.nodes(a_node("n1"))
    await world.create(a_pod("p"))
    await world.until(lambda: bool(world.message("p")))
    condition = world.pods["p"].condition("PodScheduled")
    assert condition is not None
    return world.message("p"), condition.reason


class Moody(PreEnqueue):
    """Lets every pod in, and cannot say so a second time about the first member of a gang."""

    name = "Moody"

    def __init__(self, *_: object) -> None:
        self._asked: set[str] = set()

    def pre_enqueue(self, pod: Pod) -> Status:
        """Fail when asked again about ``g-0``."""
        if pod.metadata.name == "g-0" and pod.metadata.name in self._asked:
            raise RuntimeError("asked before")
        self._asked.add(pod.metadata.name)
        return SUCCESS


async def test_a_plugin_that_fails_leaves_others_of_the_gang_to_say_why_they_wait(cluster: Cluster) -> None:
    """Members of a gang that is incomplete say so, also those that come after one whose plugin cannot be asked."""
    async with a_world_with(cluster, "preEnqueue", Moody) as world:
        await world.gang("g", 2, minimum=3)
        await world.until(lambda: "3" in world.message("g-1"))


class Doorkeeper(PreEnqueue):
    """Lets no pod in."""

    name = "Doorkeeper"

    def __init__(self, *_: object) -> None: ...

    def pre_enqueue(self, pod: Pod) -> Status:
        """Refuse it."""
        return Status.unschedulable("not before noon")


class Gatekeeper(Permit):
    """Has every pod wait for an hour."""

    name = "Gatekeeper"

    def __init__(self, *_: object) -> None: ...

    def permit(self, state: CycleState, pod: Pod, node: str) -> tuple[Status, float]:
        """Have it wait."""
        return Status(Code.WAIT), 3600.0


class Endless(PreBind):
    """Never ends to prepare a pod."""

    name = "Endless"

    def __init__(self, *_: object) -> None: ...

    async def pre_bind(self, state: CycleState, pod: Pod, node: str) -> Status:
        """Wait for ever."""
        await asyncio.Event().wait()
        return SUCCESS


@pytest.mark.parametrize(
    ("point", "plugin", "said"),
    [
        ("preEnqueue", Doorkeeper, "plugin Doorkeeper keeps it out of the queue: not before noon"),
        ("permit", Gatekeeper, "it waits for plugin Gatekeeper to let it be bound to n1"),
        ("preBind", Endless, "it waits for plugin Endless to prepare it at preBind, before it is bound to n1"),
    ],
    ids=["queue", "bind", "preparation"],
)
async def test_a_pod_that_only_a_plugin_holds_says_so(
    cluster: Cluster, point: str, plugin: type[FrameworkPlugin], said: str
) -> None:
    """Nothing else would say why it waits, for as long as the plugin likes; and no autoscaler is to add a node."""
    async with a_world_with(cluster, point, plugin) as world:
        assert await what_a_pod_says(world) == (said, "Inadmissible")


class Judge(NodeFilter):
    """Answers about a node what the test gives it."""

    name = "Judge"
    answer: Any = None

    def __init__(self, *_: object) -> None: ...

    def filter_node(self, state: CycleState, pod: Pod, node: Node) -> Status:
        """Give the answer."""
        return self.answer  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "plugin Judge failed at filter: returned None, expected a Status"),
        (True, "plugin Judge failed at filter: returned True (bool), expected a Status"),
        (Status.error("no map"), "plugin Judge failed at filter: raised AnsweredError: no map (about node n1)"),
    ],
    ids=["none", "bool", "error"],
)
async def test_a_node_filter_that_gives_no_verdict_has_failed(cluster: Cluster, answer: Any, said: str) -> None:
    """What it returned is said, and no autoscaler is to add a node for it."""
    async with a_world_with(cluster, "filter", type(Judge.name, (Judge,), {"answer": answer})) as world:
        message, reason = await what_a_pod_says(world)
    assert said in message
    assert reason == "SchedulerError"


async def test_what_is_overtaken_is_not_written(cluster: Cluster) -> None:
    """While one message is being written, only the newest of those that follow is written after it."""
    async with a_world(cluster) as world:
        slow = SlowPatches(cluster)
        world.transport = slow
        async with world.scheduling():
            await world.create(a_pod("p", cpu="64"))
            for number in range(1, 4):
                await world.nodes(a_node(f"n{number}"))
                await world.settle(15)
            slow.may_pass.set()
            await world.until(lambda: world.message("p").startswith("0/3 nodes"))
        assert slow.writes == ["PATCH status"] * 2


async def test_the_time_of_the_condition_is_that_of_its_turn(world: World) -> None:
    """A new message does not move the time since which the pod has been unschedulable."""
    await world.create(a_pod("p", cpu="64"))
    await world.until(lambda: bool(world.message("p")))
    first = world.pods["p"].condition("PodScheduled")
    await world.settle(10)
    await world.nodes(a_node("n1"))
    await world.until(lambda: world.message("p").startswith("0/1 nodes"))
    second = world.pods["p"].condition("PodScheduled")
    assert first is not None
    assert second is not None
    assert first.last_transition_time == second.last_transition_time is not None


async def test_a_failure_is_no_verdict_on_the_pod(cluster: Cluster) -> None:
    """A pod that cannot be bound because of an error says SchedulerError, one that fits nowhere Unschedulable."""
    async with a_world(cluster) as world:
        world.transport = _RefusesBinds(cluster)
        async with world.scheduling():
            await world.nodes(a_node("n1"))
            await world.create(a_pod("fits"), a_pod("large", cpu="64"))
            await world.until(lambda: "the bind was refused" in world.message("fits"))
            await world.until(lambda: "Insufficient cpu" in world.message("large"))
        reasons = {name: pod.condition("PodScheduled") for name, pod in world.pods.items()}
        assert {name: found.reason for name, found in reasons.items() if found} == {
            "fits": "SchedulerError",
            "large": "Unschedulable",
        }


class _RefusesBinds(SlowPatches):
    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.may_pass.set()

    async def request(self, request: Request) -> Response:
        if request.path.endswith("/binding"):
            return Response(
                422, {}, b'{"kind":"Status","status":"Failure","code":422,"message":"the bind was refused"}'
            )
        return await super().request(request)


async def test_a_promise_is_written_and_taken_back(world: World) -> None:
    """A pod that waits for victims to go names its node; when it is bound the API server has cleared that."""
    await world.nodes(a_node("n1", cpu="1"))
    await world.priority("high", 1000)
    victim = a_pod("victim")
    victim["spec"]["terminationGracePeriodSeconds"] = 5
    await world.create(victim)
    await world.until(lambda: bool(world.node_of("victim")))
    await world.create(a_pod("important", priority_class="high"))
    await world.until(lambda: world.nominated("important") == "n1")
    await world.client.delete(POD, "victim", world.namespace, grace_period_seconds=0)
    await world.until(lambda: world.node_of("important") == "n1")
    await world.settle(5)
    assert world.nominated("important") == ""


async def test_waiting_groups_cost_nothing(bench: Bench) -> None:
    """Groups that cannot be placed are not tried again, however long nothing changes; room wakes them."""
    bench.put(a_bench_node("n1", cpu=2))
    for number in range(30):
        bench.gang(f"g{number:02d}", 3, created=number)
    await bench.run(seconds=30)
    tried = bench.attempts
    await bench.run(seconds=3600)
    assert bench.attempts == tried
    bench.put(a_bench_node("n2", cpu=1))
    await bench.run(seconds=30)
    assert sorted(bench.binds) == ["g00-0", "g00-1", "g00-2"]


async def test_room_promised_to_a_pod_that_goes_is_news(bench: Bench) -> None:
    """When a pod that was promised a node is deleted, whoever was refused for its sake is tried again."""
    bench.put(a_bench_node("n1", cpu=1), a_bench_pod("low", node="n1"))
    bench.put(a_bench_pod("high", priority=8))
    await bench.run()
    bench.put(a_bench_pod("thief", priority=8, created=5))
    await bench.run(seconds=2)
    bench.delete("low")
    await bench.run(seconds=0)
    bench.delete("high")
    await bench.run(seconds=15)
    assert bench.binds.get("thief") == "n1" or bench.binds.get("high") == "n1"

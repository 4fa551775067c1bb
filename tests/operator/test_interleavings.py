"""Two requests that pass each other on the way, an answer that is lost, news that come late: one interleaving each."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TypeAlias

import msgspec
import pytest
from msgspec.structs import replace

from spinney.api.core import POD
from spinney.api.grove import POD_CLIQUE_SCALING_GROUP, POD_CLIQUE_SET, PodCliqueSet
from spinney.kube.errors import ConnectionFailed
from spinney.kube.transport import Request, Response
from spinney.server import ApiServer
from spinney.sim.embedded.transport import InProcessStream, InProcessTransport
from spinney.testing.builders import a_clique, a_pod_clique_set, a_pod_spec, a_scaling_group
from tests.operator.harness import World, a_world
from tests.virtual_time import on_virtual_time

Send: TypeAlias = Callable[[], Awaitable[Response]]
Meddle: TypeAlias = Callable[[str, str, bytes, Send], Awaitable[Response]]


class MeddledLine(InProcessTransport):
    """A line on which somebody decides about every request, and news of some kinds are late. Mutable."""

    def __init__(self, server: ApiServer, meddle: Meddle, late: Mapping[str, float]) -> None:
        super().__init__(server)
        self._meddle = meddle
        self._late = late

    async def request(self, request: Request) -> Response:
        """Pass a request on when, and if, the meddler says so."""

        async def send() -> Response:
            return await super(MeddledLine, self).request(replace(request, timeout=None))

        return await self._meddle(request.method, request.path, request.body or b"", send)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[InProcessStream]:
        """Open a watch; what comes is passed on after the seconds of its kind."""
        lag = self._late.get(request.path.rpartition("/")[2], 0.0)
        async with super().stream(request) as stream:
            yield InProcessStream(stream.status, stream.headers, _lagging(stream, lag))


async def _lagging(stream: InProcessStream, seconds: float) -> AsyncIterator[bytes]:
    async for chunk in stream:
        if seconds:
            await asyncio.sleep(seconds)
        yield chunk


def meddled(meddle: Meddle, **late: float) -> Callable[[ApiServer], InProcessTransport]:
    """Return how an operator gets such a line."""
    return lambda server: MeddledLine(server, meddle, late)


@on_virtual_time
async def test_a_creation_whose_answer_was_lost_is_repeated_under_its_name() -> None:
    """A gang that stops referring to a former pod meanwhile does not make the second attempt a second pod."""
    lost: list[bytes] = []

    async def lose_one_creation(method: str, path: str, body: bytes, send: Send) -> Response:
        answer = await send()
        if method == "POST" and path.endswith("/pods") and not lost:
            lost.append(body)
            raise ConnectionFailed("the answer was lost")
        return answer

    async with a_world() as world:
        await world.bring_up(a_pod_clique_set("model", [a_clique("worker", 2, 1)]))
        pods = await world.pods()
    async with world.server.running():  # nobody is there to see the pod go
        await world.client.delete(POD, pods[0].metadata.name, "test", grace_period_seconds=0)
    # The gang refers to the pod that went, so its name is not used again: until the gang has been told.
    async with a_world(server=world.server, line=meddled(lose_one_creation, pods=1.0)) as later:
        await later.settle(30)
        assert lost
        assert len(await later.pods()) == 2


def _completes(method: str, path: str, body: bytes, gang: str) -> bool:
    """Say whether a request writes that a gang is Initialized."""
    if method != "PATCH" or not path.endswith(f"/podgangs/{gang}/status"):
        return False
    conditions = msgspec.json.decode(body)["status"].get("conditions", ())
    return any(each["type"] == "Initialized" and each["status"] == "True" for each in conditions)


async def _scale_group(world: World) -> None:
    await world.client.patch(POD_CLIQUE_SCALING_GROUP, "model-0-g", {"spec": {"replicas": 1}}, "test")


async def _scale_set(world: World) -> None:
    await world.client.patch(POD_CLIQUE_SET, "model", {"spec": {"replicas": 0}}, "test")


async def _change_template(world: World) -> None:
    await world.apply(_model("registry.example/worker:2"))


def _model(image: str) -> PodCliqueSet:
    spec = a_pod_spec(image=image)
    cliques = [a_clique("alone", 2, pod_spec=spec), a_clique("member", 2, pod_spec=spec)]
    return a_pod_clique_set("model", cliques, [a_scaling_group("g", ["member"], 3, 1)])


@pytest.mark.parametrize("gang", ["model-0", "model-0-g-1"])
@pytest.mark.parametrize(("act", "expected"), [(_scale_group, 4), (_scale_set, 0), (_change_template, 8)])
@pytest.mark.parametrize("late", [{}, {"podcliques": 0.3, "pods": 0.3}])
@on_virtual_time
async def test_nothing_of_a_gang_goes_while_it_is_called_complete(
    act: Callable[[World], Awaitable[None]], expected: int, gang: str, late: dict[str, float]
) -> None:
    """What a scale-in or an update takes away goes after the word that the gang is complete, or that is not spoken."""
    worlds: list[World] = []
    asked: list[bytes] = []
    gone = asyncio.Event()

    async def hold_back(method: str, path: str, body: bytes, send: Send) -> Response:
        if _completes(method, path, body, gang) and not asked:
            asked.append(body)
            await act(worlds[0])
            with suppress(TimeoutError):
                await asyncio.wait_for(gone.wait(), 1)
        answer = await send()
        if method == "DELETE" and not path.rpartition("/")[0].endswith("/podgangs"):
            await asyncio.sleep(0.001)  # garbage is collected
            gone.set()
        return answer

    async with a_world(line=meddled(hold_back, **late)) as world:
        worlds.append(world)
        await world.bring_up(_model("registry.example/worker:1"), 60)
        assert asked
        assert len(await world.pods()) == expected


@pytest.mark.parametrize("arrives", [True, False])
@on_virtual_time
async def test_a_deletion_whose_answer_was_lost_is_looked_after(arrives: bool) -> None:
    """Though nobody repeats it: no gang is called complete because of what has gone, none waits for what has stayed."""
    worlds: list[World] = []
    deletions: list[str] = []
    reads: list[str] = []
    lost = asyncio.Event()

    async def scale(replicas: int) -> None:
        await worlds[0].client.patch(POD_CLIQUE_SCALING_GROUP, "model-0-g", {"spec": {"replicas": replicas}}, "test")

    async def meddle(method: str, path: str, body: bytes, send: Send) -> Response:
        if method == "PATCH" and path.endswith("/podgangs/model-0-g-1") and b"podReferences" in body and not deletions:
            await scale(2)
            await lost.wait()
        if method == "DELETE" and path.endswith("/podcliques/model-0-g-2-member") and not deletions:
            deletions.append(path)
            if arrives:
                await send()
            await scale(3)
            lost.set()
            raise ConnectionFailed("the answer was lost")
        if method == "GET" and deletions and path == deletions[0]:
            reads.append(path)
        return await send()

    async with a_world(line=meddled(meddle, podcliques=0.5, pods=0.5)) as world:
        worlds.append(world)
        await world.bring_up(_model("registry.example/worker:1"), 60)
        assert reads
        assert len([pod for pod in await world.pods() if pod.is_true("Ready")]) == 8


@on_virtual_time
async def test_pods_are_not_made_for_a_gang_of_a_former_set() -> None:
    """A set made anew for another scheduler gets no pods for the former one, though its former gang is still seen."""
    began = asyncio.Event()

    async def no_pods_at_first(method: str, path: str, body: bytes, send: Send) -> Response:
        if method == "POST" and path.endswith("/pods") and not began.is_set():
            raise ConnectionFailed("lost on the way")
        return await send()

    def model(scheduler: str) -> PodCliqueSet:
        return a_pod_clique_set("model", [a_clique("worker", 2, pod_spec=a_pod_spec(scheduler=scheduler))])

    async with a_world(line=meddled(no_pods_at_first, podgangs=3.0)) as world:
        await world.bring_up(model("spinney-scheduler"), 20)
        await world.client.delete(POD_CLIQUE_SET, "model", "test")
        await world.settle(1)
        began.set()
        await world.bring_up(model("default-scheduler"), 60)
        assert [pod.spec.scheduler_name for pod in await world.pods()] == ["default-scheduler"] * 2

"""While nobody looks at a view few rows are made; whoever comes finds those of the moment."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

from spinney.api.core import EVENT, NODE, POD, Node, Pod
from spinney.api.podgang import POD_GANG
from spinney.api.struct import convert
from spinney.cluster.classes import RequestClasses
from spinney.cluster.pods import record_of
from spinney.cluster.resources import ResourceAxis
from spinney.dashboard.gang_page import gang_page, timeline
from spinney.dashboard.history import Moment
from spinney.dashboard.view import RefreshPace, View
from spinney.gangs.tree import GangKey
from spinney.kube.cache import Change
from spinney.kube.client import Client
from spinney.kube.crds import install_crds
from spinney.kube.keys import Key
from spinney.kube.transport import Request, Response
from spinney.runtime import Runtime
from spinney.runtime.tasks import end
from spinney.server import ApiServer
from spinney.sim.embedded.transport import InProcessStream, InProcessTransport
from tests.virtual_time import on_virtual_time


def _nodes_in(view: View) -> list[str]:
    return [row["name"] for row in json.loads(view.state())["nodes"]]


async def test_who_comes_sees_what_happened_while_nobody_looked() -> None:
    """The first viewer has the rows made; for those who come beside them they are made as things change."""
    runtime = Runtime.system()
    view = View(Client(InProcessTransport(ApiServer(runtime)), runtime), source="test")
    for name in ("a", "b"):
        node = convert(Node, {"metadata": {"name": name}, "status": {"allocatable": {"cpu": "8", "pods": "10"}}})
        view.board.take_in(Change(Key("", name), None, node, "1"))
        assert name not in _nodes_in(view)
        with view.seen():
            assert name in _nodes_in(view)
            with view.seen():
                assert name in _nodes_in(view)
    assert _nodes_in(view) == ["a", "b"]


@on_virtual_time
async def test_an_object_is_shown_as_it_is_however_often_it_changed_unseen() -> None:
    """A node that comes, changes and is followed by one that goes again is there with what it has now."""
    runtime = Runtime.virtual(seed=3)
    server = ApiServer(runtime)
    async with server.running():
        client = Client(InProcessTransport(server), runtime)
        view = View(client, source="test", pace=RefreshPace(gather=3600.0))
        running = asyncio.create_task(view.run())
        await view.wait_until_ready()
        for name in ("a", "b"):
            status = {"allocatable": {"cpu": "8", "pods": "10"}}
            await client.create(NODE, {"metadata": {"name": name}, "status": status})
        for gpus in ("4", "8"):
            await client.patch(NODE, "a", {"status": {"allocatable": {"nvidia.com/gpu": gpus}}}, subresource="status")
        await client.delete(NODE, "b")
        await runtime.clock.sleep(1.0)
        with view.seen():
            (row,) = json.loads(view.state())["nodes"]
            assert (row["name"], row["cells"]) == ("a", 8)
        await client.create(NODE, {"metadata": {"name": "b"}, "status": status})
        await runtime.clock.sleep(1.0)
        with view.seen():
            assert _nodes_in(view) == ["a", "b"]
        await end(running)


class Line(InProcessTransport):
    """A line to a server that can be cut, watches and all, and be whole again. Mutable."""

    def __init__(self, server: ApiServer) -> None:
        super().__init__(server)
        self._cut = asyncio.Event()
        self._answers = asyncio.Event()
        self._answers.set()

    def hang(self, *, over: bool = False) -> None:
        """Leave every request open and let no watch say anything, until it is over."""
        if over:
            self._answers.set()
        else:
            self._answers.clear()

    async def request(self, request: Request) -> Response:
        await self._answers.wait()
        return await super().request(request)

    def cut(self, *, whole: bool = False) -> None:
        """End every watch, and refuse further requests unless it is whole again."""
        self._closed = not whole
        ended, self._cut = self._cut, asyncio.Event()
        ended.set()

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[InProcessStream]:
        cut = self._cut
        async with super().stream(request) as stream:
            yield InProcessStream(stream.status, stream.headers, _until(cut, stream))


async def _next(chunks: AsyncIterator[bytes]) -> bytes | None:
    return await anext(chunks, None)


async def _until(cut: asyncio.Event, stream: InProcessStream) -> AsyncIterator[bytes]:
    ended = asyncio.create_task(cut.wait())
    chunks = aiter(stream)
    try:
        while True:
            chunk = asyncio.create_task(_next(chunks))
            await asyncio.wait((chunk, ended), return_when=asyncio.FIRST_COMPLETED)
            if not chunk.done():
                await end(chunk)
                return
            if (found := chunk.result()) is None:
                return
            yield found
    finally:
        await end(ended)


@asynccontextmanager
async def viewed_over_a_line(runtime: Runtime) -> AsyncIterator[tuple[Line, View]]:
    """Run a view that has just asked for rights, and has not to ask for a minute."""
    server = ApiServer(runtime)
    async with server.running():
        line = Line(server)
        view = View(Client(line, runtime), source="test")
        running = asyncio.create_task(view.run())
        await view.wait_until_ready()
        await runtime.clock.sleep(61.0)
        yield line, view
        await end(running)


@on_virtual_time
async def test_an_api_server_that_hangs_is_reported_within_half_a_minute() -> None:
    """Its watches stay open and silent, as in a quiet cluster: only a question that it leaves open tells."""
    runtime = Runtime.virtual(seed=3)
    async with viewed_over_a_line(runtime) as (line, view):
        line.hang()
        await runtime.clock.sleep(30.0)
        assert "it has said nothing for 10 seconds" in json.loads(view.state())["trouble"]

        line.hang(over=True)
        await runtime.clock.sleep(60.0)
        assert "trouble" not in json.loads(view.state())


@on_virtual_time
async def test_what_may_be_old_is_said_to_be_so_within_seconds() -> None:
    """Rights are asked for once a minute; where a watch breaks and nobody answers, at once, until somebody does."""
    runtime = Runtime.virtual(seed=3)
    async with viewed_over_a_line(runtime) as (line, view):
        line.cut()
        await runtime.clock.sleep(10.0)
        assert "the API server does not answer" in json.loads(view.state())["trouble"]

        line.cut(whole=True)
        await runtime.clock.sleep(10.0)
        assert "trouble" not in json.loads(view.state())


@on_virtual_time
async def test_the_eviction_of_a_pod_that_nobody_saw_is_remembered() -> None:
    """A pod that came and went between two looks was in a gang: what is told of its eviction is told there."""
    runtime = Runtime.virtual(seed=3)
    server = ApiServer(runtime)
    async with server.running():
        client = Client(InProcessTransport(server), runtime)
        view = View(client, source="test", pace=RefreshPace(gather=3600.0))
        running = asyncio.create_task(view.run())
        await view.wait_until_ready()
        container = {"name": "main", "image": "none"}
        spec = {"schedulingGroup": {"podGroupName": "g"}, "containers": [container], "terminationGracePeriodSeconds": 0}
        await client.create(POD, {"metadata": {"name": "p", "namespace": "default"}, "spec": spec})
        await client.delete(POD, "p", "default", grace_period_seconds=0)
        await runtime.clock.sleep(1.0)
        about = {"kind": "Pod", "namespace": "default", "name": "p"}
        said = {"metadata": {"name": "e", "namespace": "default"}, "involvedObject": about, "reason": "Preempted"}
        await client.create(EVENT, {**said, "message": "made way"})
        await runtime.clock.sleep(1.0)
        (moment,) = view.board.history.moments(GangKey("native", "default", "g"))
        assert (moment.what, moment.text) == ("evicted", "p: made way")
        await end(running)


@on_virtual_time
async def test_a_gang_has_no_story_of_one_that_had_its_name_before() -> None:
    """A workload that is deleted and made again begins anew, though the events of its first pods are still there."""
    runtime = Runtime.virtual(seed=3)
    server = ApiServer(runtime)
    async with server.running():
        client = Client(InProcessTransport(server), runtime)
        await install_crds(client)
        view = View(client, source="test")
        running = asyncio.create_task(view.run())
        key = GangKey("podgang", "default", "g")
        gang = {"metadata": {"name": "g"}, "spec": {"podgroups": [{"name": "g", "minReplicas": 1}]}}
        labels = {"grove.io/podgang": "g", "grove.io/podclique": "g"}
        spec = {"containers": [{"name": "main", "image": "x"}], "terminationGracePeriodSeconds": 0}
        about = {"kind": "Pod", "namespace": "default", "name": "p"}
        event = {"metadata": {"name": "e"}, "involvedObject": about, "reason": "Preempted", "message": "made way"}
        stories: list[list[str]] = []
        for _ in range(2):
            await client.create(POD_GANG, gang, "default")
            await client.create(POD, {"metadata": {"name": "p", "labels": labels}, "spec": spec}, "default")
            if not stories:
                at = runtime.clock.now().isoformat()
                await client.create(EVENT, {**event, "lastTimestamp": at}, "default")
            await view.wait_until_ready()
            await runtime.clock.sleep(5.0)
            found = gang_page(view, key)
            assert found is not None
            stories.append([moment.what for moment in found.moments])
            await client.delete(POD, "p", "default", grace_period_seconds=0)
            await client.delete(POD_GANG, "g", "default")
            await runtime.clock.sleep(3600.0)
        assert "evicted" in stories[0]
        assert stories[1] == [what for what in stories[0] if what != "evicted"]
        await end(running)


def test_a_gang_of_many_pods_is_evicted_in_one_line() -> None:
    """Pods for which the same is said at the same time leave in one moment, and earlier evictions are still told."""
    at = datetime(2026, 1, 1, 12, tzinfo=UTC)
    records, classes = [], RequestClasses(ResourceAxis())
    for number in range(300):
        target = {"type": "DisruptionTarget", "status": "True", "reason": "Preempted", "message": "made way"}
        condition = {**target, "lastTransitionTime": "2026-01-01T12:00:00Z" if number < 299 else "2026-01-01T12:00:01Z"}
        metadata = {"name": f"p-{number}", "namespace": "default", "creationTimestamp": "2026-01-01T11:00:00Z"}
        pod = convert(Pod, {"metadata": metadata, "spec": {"nodeName": "n"}, "status": {"conditions": [condition]}})
        records.append(record_of(pod, classes))
    seen = [Moment(at=at - timedelta(minutes=minutes), what="evicted", text=f"{minutes} ago") for minutes in (30, 0)]

    told = [moment.text for moment in timeline(None, None, records, seen) if moment.what == "evicted"]

    assert told == ["30 ago", "p-0 and 298 more pods leave: made way", "p-299 leaves n: made way"]

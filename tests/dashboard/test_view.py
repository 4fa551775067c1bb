"""While nobody looks at a view few rows are made; whoever comes finds those of the moment."""

import asyncio
import json

from spinney.api.core import EVENT, NODE, POD, Node
from spinney.api.struct import convert
from spinney.dashboard.view import RefreshPace, View
from spinney.gangs.tree import GangKey
from spinney.kube.cache import Change
from spinney.kube.client import Client
from spinney.kube.keys import Key
from spinney.runtime import Runtime
from spinney.runtime.tasks import end
from spinney.server import ApiServer
from spinney.sim.embedded.transport import InProcessTransport
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

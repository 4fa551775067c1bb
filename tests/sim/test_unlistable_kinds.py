"""A kind that the API server cannot list, as its conversion webhook is away, hides nothing else from commands."""

import json

import pytest

from spinney.api.core import NODE, POD
from spinney.api.kai import POD_GROUP, QUEUE, Queue
from spinney.api.resource import Resource
from spinney.api.struct import encode
from spinney.cli.clusters.connecting import Connection
from spinney.cli.clusters.following import following
from spinney.dashboard.rights import readable
from spinney.dashboard.view import RefreshPace, View
from spinney.kube.client import Client
from spinney.kube.crds import install_crds
from spinney.kube.errors import InternalError
from spinney.kube.transport import Request, Response
from spinney.runtime import Runtime
from spinney.runtime.tasks import in_background
from spinney.server import ApiServer
from spinney.sim.advice.suspended_workloads import suspended_workload
from spinney.sim.embedded.transport import InProcessTransport
from spinney.sim.overview.suspended import suspended_counts
from spinney.sim.snapshots.snapshot import take
from spinney.workloads.objects import JOB
from tests.virtual_time import on_virtual_time

WORDS = "conversion webhook for scheduling.run.ai/v3, Kind=PodGroup failed"


class Unconverted(InProcessTransport):
    """An API server that cannot read the objects of one kind, or only those after the first."""

    def __init__(self, server: ApiServer, kind: Resource, *, reads_first: bool = False) -> None:
        super().__init__(server)
        self._path = kind.path(None)
        self.fails, self._reads_first = True, reads_first

    async def request(self, request: Request) -> Response:
        if self.fails and request.path == self._path and not (self._reads_first and request.query.get("limit") == "1"):
            status = {"kind": "Status", "code": 500, "reason": "StorageReadError", "message": WORDS}
            return Response(500, {}, encode(status))
        return await super().request(request)


@pytest.mark.parametrize("reads_first", [False, True], ids=["none", "all but the first"])
@on_virtual_time
async def test_the_kind_is_named_and_the_rest_is_seen(*, reads_first: bool) -> None:
    """Snapshots, and what commands follow, have all other kinds, and say what is lacking in the server's words."""
    server = ApiServer(Runtime.virtual(seed=1))
    async with server.running():
        client = Client(Unconverted(server, POD_GROUP, reads_first=reads_first), server.runtime)
        await install_crds(client)
        await client.create(QUEUE, {"metadata": {"name": "team"}, "spec": {}})
        taken = await take(client)
        async with following(Connection(client, "here", "default")) as followed:
            seen = followed.snapshot()
    for snapshot in (taken, seen):
        assert [queue.metadata.name for queue in snapshot.of(QUEUE, Queue)] == ["team"]
        assert [(each.what, each.reason) for each in snapshot.unseen] == [
            ("podgroups.scheduling.run.ai", f"cannot be listed: {WORDS}")
        ]
        assert snapshot.refused(POD_GROUP)


@on_virtual_time
async def test_the_dashboard_shows_the_rest() -> None:
    """The kind is among what is not shown, and is not taken for one that the viewer may not list."""
    server = ApiServer(Runtime.virtual(seed=1))
    async with server.running():
        client = Client(Unconverted(server, POD_GROUP), server.runtime)
        await install_crds(client)
        scope = await readable(client, ["default"])
    assert {NODE, POD, QUEUE} <= scope.everywhere
    assert [str(each) for each in scope.unseen] == [
        "podgroups.scheduling.run.ai: cannot be listed: the API server fails when it is asked"
    ]


@on_virtual_time
async def test_suspended_workloads_of_other_kinds_are_found() -> None:
    """A name alone may mean any kind, and the answer about it needs none; who names the kind is told what is wrong."""
    server = ApiServer(Runtime.virtual(seed=1))
    async with server.running():
        client = Client(Unconverted(server, JOB), server.runtime)
        counted = await suspended_counts(client)
        assert await suspended_workload(client, "train", None) is None
        with pytest.raises(InternalError, match="conversion webhook"):
            await suspended_workload(client, "job/train", None)
    assert [str(each) for each in counted.unseen] == [f"jobs.batch: cannot be listed: {WORDS}"]


@on_virtual_time
async def test_the_dashboard_shows_the_rest_where_only_a_later_object_cannot_be_read() -> None:
    """The kind is named although one object of it can be listed, and is no longer when all can be."""
    server = ApiServer(Runtime.virtual(seed=1))
    transport = Unconverted(server, POD_GROUP, reads_first=True)
    client = Client(transport, server.runtime)
    view = View(client, source="test", pace=RefreshPace(rights=1.0))
    async with server.running():
        await install_crds(client)
        await client.create(QUEUE, {"metadata": {"name": "team"}, "spec": {}})
        async with in_background(view.run()):
            await view.wait_until_ready()
            shown, taken = json.loads(view.state()), view.snapshot()
            assert "team" in [queue["line"]["name"] for queue in shown["queues"]]
            assert [(each["what"], each["reason"]) for each in shown["unseen"]] == [
                ("podgroups.scheduling.run.ai", f"cannot be listed: {WORDS}")
            ]
            assert taken.refused(POD_GROUP)
            transport.fails = False
            while json.loads(view.state()).get("unseen"):
                await server.runtime.clock.sleep(1)
            assert view.snapshot().sees(POD_GROUP)


@pytest.mark.parametrize("kind", [NODE, POD], ids=str)
@on_virtual_time
async def test_a_dashboard_without_all_nodes_or_pods_says_why(kind: Resource) -> None:
    """Where one of these that is not the first cannot be read, the page has the server's words."""
    server = ApiServer(Runtime.virtual(seed=1))
    async with server.running():
        client = Client(Unconverted(server, kind, reads_first=True), server.runtime)
        view = View(client, source="test")
        async with in_background(view.run()):
            with pytest.raises(InternalError, match="conversion webhook"):
                await view.wait_until_ready()


@pytest.mark.parametrize("kind", [NODE, POD], ids=str)
@on_virtual_time
async def test_nothing_is_followed_without_all_nodes_or_pods(kind: Resource) -> None:
    """A command that follows the cluster ends with the server's words."""
    server = ApiServer(Runtime.virtual(seed=1))
    async with server.running():
        client = Client(Unconverted(server, kind, reads_first=True), server.runtime)
        with pytest.raises(InternalError, match="conversion webhook"):
            async with following(Connection(client, "here", "default")):
                pass


@pytest.mark.parametrize("kind", [NODE, POD], ids=str)
@on_virtual_time
async def test_without_nodes_or_pods_nothing_is_said(kind: Resource) -> None:
    """No answer is made up where these cannot be listed."""
    server = ApiServer(Runtime.virtual(seed=1))
    async with server.running():
        client = Client(Unconverted(server, kind), server.runtime)
        with pytest.raises(InternalError, match="conversion webhook"):
            await take(client)
        with pytest.raises(InternalError, match="conversion webhook"):
            await readable(client)

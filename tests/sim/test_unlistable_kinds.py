"""A kind that the API server cannot list, as its conversion webhook is away, hides nothing else from commands."""

import pytest

from spinney.api.core import NODE, POD
from spinney.api.kai import POD_GROUP, QUEUE, Queue
from spinney.api.resource import Resource
from spinney.api.struct import encode
from spinney.cli.clusters.connecting import Connection
from spinney.cli.clusters.following import following
from spinney.dashboard.rights import readable
from spinney.kube.client import Client
from spinney.kube.crds import install_crds
from spinney.kube.errors import InternalError
from spinney.kube.transport import Request, Response
from spinney.runtime import Runtime
from spinney.server import ApiServer
from spinney.sim.advice.suspended_workloads import suspended_workload
from spinney.sim.embedded.transport import InProcessTransport
from spinney.sim.overview.suspended import suspended_counts
from spinney.sim.snapshots.snapshot import take
from spinney.workloads.objects import JOB
from tests.virtual_time import on_virtual_time

WORDS = "conversion webhook for scheduling.run.ai/v3, Kind=PodGroup failed"


class Unconverted(InProcessTransport):
    """An API server that cannot read the objects of one kind."""

    def __init__(self, server: ApiServer, kind: Resource) -> None:
        super().__init__(server)
        self._path = kind.path(None)

    async def request(self, request: Request) -> Response:
        if request.path == self._path:
            status = {"kind": "Status", "code": 500, "reason": "StorageReadError", "message": WORDS}
            return Response(500, {}, encode(status))
        return await super().request(request)


@on_virtual_time
async def test_the_kind_is_named_and_the_rest_is_seen() -> None:
    """Snapshots, and what commands follow, have all other kinds, and say what is lacking in the server's words."""
    server = ApiServer(Runtime.virtual(seed=1))
    async with server.running():
        client = Client(Unconverted(server, POD_GROUP), server.runtime)
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

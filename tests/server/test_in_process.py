"""The in-process transport: the client's contract, without sockets."""

import asyncio
from itertools import pairwise

import msgspec
import pytest

from spinney.api.core import CONFIG_MAP, POD
from spinney.api.struct import JSON
from spinney.kube.client import Client
from spinney.kube.errors import AlreadyExists, ConnectionRefused, ConnectionTimedOut, NotFound
from spinney.kube.transport import Request
from spinney.runtime import Runtime
from spinney.server import ApiServer
from spinney.sim.embedded.transport import InProcessTransport, RequestTurns
from tests.server.api import CONFIG_MAPS, a_config_map, a_pod
from tests.virtual_time import on_virtual_time


@on_virtual_time
async def test_a_client_works_on_virtual_time() -> None:
    """A client creates, applies, binds, watches and deletes without a socket, and errors are the client's own."""
    runtime = Runtime.virtual()
    server = ApiServer(runtime)
    async with server.running():
        client = Client(InProcessTransport(server), runtime)
        made = await client.create(POD, a_pod("p"), "default")
        await client.bind("default", "p", made["metadata"]["uid"], "n")
        assert (await client.get(POD, "p", "default"))["spec"]["nodeName"] == "n"
        with pytest.raises(AlreadyExists):
            await client.create(POD, a_pod("p"), "default")
        with pytest.raises(NotFound):
            await client.get(POD, "q", "default")
        config: JSON = {"apiVersion": "v1", "kind": "ConfigMap", **a_config_map("c", v="1")}
        await client.apply(CONFIG_MAP, config, "default")
        async for event in client.watch(CONFIG_MAP, "default"):
            assert event.type == "ADDED"
            break
        await client.delete(CONFIG_MAP, "c", "default")
        with pytest.raises(NotFound):
            await client.get(CONFIG_MAP, "c", "default")
        await client.transport.close()


@on_virtual_time
async def test_a_writer_cannot_starve_a_watcher() -> None:
    """However fast one task writes, another that watches sees every change as it is made."""
    server = ApiServer(Runtime.virtual())
    transport = InProcessTransport(server)
    behind: list[int] = []
    seen = 0

    async def follow() -> None:
        nonlocal seen
        async with transport.stream(Request("GET", CONFIG_MAPS, query={"watch": "true"})) as stream:
            async for chunk in stream:
                seen += chunk.count(b"\n")

    following = asyncio.create_task(follow())
    await asyncio.sleep(1)
    for index in range(200):
        await transport.request(Request("POST", CONFIG_MAPS, body=b'{"metadata":{"name":"c%d"}}' % index))
        behind.append(index - seen)
    following.cancel()
    assert max(behind) <= 3


@on_virtual_time
async def test_watchers_of_one_process_are_given_the_same_lines() -> None:
    """What several clients are sent is made once: the lines are the same objects, and need not be compared."""
    runtime = Runtime.virtual()
    server = ApiServer(runtime)
    clients = [Client(InProcessTransport(server), runtime) for _ in range(2)]

    version = (await clients[0].list(CONFIG_MAP, "default")).resource_version

    async def first_lines(client: Client) -> list[bytes]:
        async for batch in client.watch_lines(CONFIG_MAP, "default", resource_version=version):
            return list(batch)
        raise AssertionError("the watch has ended")

    following = [asyncio.create_task(first_lines(client)) for client in clients]
    await asyncio.sleep(1)
    await clients[0].create(CONFIG_MAP, {"apiVersion": "v1", "kind": "ConfigMap", **a_config_map("c")}, "default")
    (one,), (other,) = await asyncio.gather(*following)
    assert one is other
    assert b'"name":"c"' in one


@on_virtual_time
async def test_time_runs_out_as_for_any_transport() -> None:
    """A request that takes too long, and one on a closed transport, fail as the client expects."""
    transport = InProcessTransport(ApiServer(Runtime.virtual()))
    with pytest.raises(ConnectionTimedOut):
        await transport.request(Request("GET", CONFIG_MAPS, query={"watch": "true"}, timeout=5))
    await transport.close()
    with pytest.raises(ConnectionRefused):
        await transport.request(Request("GET", CONFIG_MAPS))


@on_virtual_time
async def test_many_writes_at_once_leave_room_for_others() -> None:
    """Writers that share turns are let in a few at a time, in order; one that gives up takes nobody's turn."""
    server = ApiServer(Runtime.virtual())
    turns = RequestTurns(at_once=4)
    made: list[int] = []
    seen: list[int] = []

    async def write(number: int) -> None:
        await InProcessTransport(server, turns).request(
            Request("POST", CONFIG_MAPS, body=msgspec.json.encode(a_config_map(f"c{number}")))
        )
        made.append(number)

    writers = [asyncio.create_task(write(number)) for number in range(100)]
    while len(made) < 99:
        await asyncio.sleep(0)
        seen.append(len(made))
        if len(seen) == 5:
            writers[90].cancel()

    assert made == [number for number in range(100) if number != 90]
    assert max(after - before for before, after in pairwise(seen)) <= 4
    await asyncio.gather(*writers, return_exceptions=True)

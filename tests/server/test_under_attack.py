"""What hostile requests get from the embedded server: a refusal that names the fault, never a 500, never a wait."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from yarl import URL

from spinney.api.struct import JSON
from spinney.runtime import Runtime
from spinney.server import ApiServer, HttpServer, Listening, ServerOptions
from tests.server.api import CONFIG_MAPS, NODES, Api
from tests.server.attacks import STORY, Step

_TOKENS = "/api/v1/namespaces/default/serviceaccounts/default/token"
_ATTEMPTS = 600


@asynccontextmanager
async def guarded(**listening: int | float | bool) -> AsyncIterator[HttpServer]:
    """Serve a cluster in which roles decide."""
    server = ApiServer(Runtime.system(), ServerOptions(authorization="RBAC"))
    async with server.running(), HttpServer(server, Listening(**listening)) as http:  # type: ignore[arg-type]
        yield http


async def answered(session: aiohttp.ClientSession, url: str, token: str, step: Step) -> tuple[int, JSON]:
    """Send a step until it has its status, once unless the server may need a moment; return the last answer."""
    headers = {"authorization": f"Bearer {token}", **step.headers}
    for _ in range(_ATTEMPTS if step.patient else 1):
        target = URL(f"{url}{step.path}", encoded=True)
        async with session.request(step.method, target, data=step.body, headers=headers) as answer:
            status, body = answer.status, await answer.read()
        if status == step.status:
            break
        await asyncio.sleep(0.1)
    return status, json.loads(body)


async def test_every_attack_has_its_answer() -> None:
    """Each request of the story has exactly the status that a real API server gives it."""
    async with guarded(tls=False) as http, aiohttp.ClientSession() as session:
        for step in STORY:
            status, body = await answered(session, http.url, http.token, step)
            assert status == step.status, (step.about, body.get("message"))
        assert (await session.get(f"{http.url}/readyz")).status == 200


async def test_times_and_dates_stay_text(api: Api) -> None:
    """What looks like minutes or a date is stored as it was written, quoted or not."""
    data = b'data: {at: 12:30, day: 2026-01-02, far: 190:20:30.15, on: "x", 7: "y"}'
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n" + data
    answer = await api.send("POST", CONFIG_MAPS, text, headers={"content-type": "application/yaml"})
    expected = {"at": "12:30", "day": "2026-01-02", "far": "190:20:30.15", "true": "x", "7": "y"}
    assert answer.body["data"] == expected


async def node_bound(session: aiohttp.ClientSession, url: str, admin: str) -> list[int]:
    """Return how a token that is bound to a node fares: never used, node gone, another node of the name."""
    as_admin = {"authorization": f"Bearer {admin}"}
    node = {"metadata": {"name": "attack-node"}}
    wanted = {"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Node", "name": "attack-node"}}}
    await session.post(f"{url}{NODES}", json=node, headers=as_admin)
    async with session.post(f"{url}{_TOKENS}", json=wanted, headers=as_admin) as made:
        token = (await made.json())["status"]["token"]
    await session.delete(f"{url}{NODES}/attack-node", headers=as_admin)
    gone, _ = await answered(session, url, token, Step("gone", "GET", "/api", status=401, patient=True))
    await session.post(f"{url}{NODES}", json=node, headers=as_admin)
    other, _ = await answered(session, url, token, Step("another", "GET", "/api", status=401, patient=True))
    await session.delete(f"{url}{NODES}/attack-node", headers=as_admin)
    return [gone, other]


async def test_a_token_bound_to_a_node_ends_with_it() -> None:
    """A token that was made for a node is nobody's once the node is gone, or another of its name has come."""
    async with guarded(tls=False) as http, aiohttp.ClientSession() as session:
        assert await node_bound(session, http.url, http.token) == [401, 401]


async def _raw(http: HttpServer, text: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(http.url.rpartition(":")[2]))
    writer.write(text)
    await writer.drain()
    return reader, writer


async def test_bytes_that_are_no_text_are_no_token() -> None:
    """A bearer token of bytes that are no text is refused like any other that is wrong."""
    async with guarded(tls=False) as http:
        reader, writer = await _raw(http, b"GET /api HTTP/1.1\r\nhost: a\r\nauthorization: Bearer \xff\xfe\xc3\r\n\r\n")
        assert (await reader.readline()).split()[1] == b"401"
        writer.close()
        await writer.wait_closed()


@pytest.mark.parametrize("path", ["/readyz", "/api/v1/nodes"])
async def test_unfinished_bodies_of_strangers_hold_nobody_up(path: str) -> None:
    """More unfinished bodies than requests allowed, from somebody unknown, are answered at once; others are served."""
    async with guarded(tls=False, max_requests=8, body_timeout=60) as http:
        text = f"POST {path} HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000\r\n\r\nx".encode()
        strangers = [await _raw(http, text) for _ in range(12)]
        for reader, _ in strangers:
            assert (await reader.readline()).split()[1] in {b"403", b"405"}
        async with aiohttp.ClientSession(headers={"authorization": f"Bearer {http.token}"}) as session:
            assert (await session.get(f"{http.url}{NODES}")).status == 200
        for _, writer in strangers:
            writer.close()


async def test_connections_are_bounded_and_known_clients_stay() -> None:
    """When strangers open more connections than there may be, their oldest are closed, and no known client's."""
    async with guarded(tls=False, max_connections=4) as http:
        known = {"authorization": f"Bearer {http.token}"}
        async with aiohttp.ClientSession(headers=known, connector=aiohttp.TCPConnector(limit=1)) as session:
            async with session.get(f"{http.url}{NODES}") as answer:
                await answer.read()
                connection = answer.connection
            strangers = [await _raw(http, b"GET /api HTTP/1.1\r\n") for _ in range(10)]
            for reader, _ in strangers[:7]:
                with pytest.raises(ConnectionResetError):
                    await _ended(reader)
            async with session.get(f"{http.url}{NODES}") as answer:
                assert answer.status == 200
            assert connection is None
            for _, writer in strangers:
                writer.close()


async def _ended(reader: asyncio.StreamReader) -> None:
    if await reader.read() == b"":
        raise ConnectionResetError("the server has closed the connection")


async def test_what_clients_send_does_not_become_a_metric(api: Api) -> None:
    """However many values of dryRun are sent, three are counted: none, All, and invalid."""
    for value in ("", "All", *(f"{i:03}" for i in range(50))):
        await api.send("POST", CONFIG_MAPS, {"metadata": {"name": "a"}}, query={"dryRun": value})
    text = (await api.send("GET", "/metrics")).body.decode()
    lines = [line for line in text.splitlines() if line.startswith("apiserver_request_total") and "configmaps" in line]
    assert {line.partition('dry_run="')[2].partition('"')[0] for line in lines} == {"", "All", "invalid"}

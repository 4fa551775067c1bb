"""Hostile and broken clients over HTTP: they get an error or lose their connection, and cost nobody else anything."""

import asyncio
import json
import resource
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spinney.runtime import Runtime
from spinney.server import ApiServer, HttpServer, Listening, ServerOptions
from tests.server.api import (
    APPLY,
    CONFIG_MAPS,
    DEFINITIONS,
    JSON_PATCH,
    MERGE,
    PODS,
    STRATEGIC,
    WIDGETS,
    Api,
    a_config_map,
    a_definition,
    an_api,
)

_MIB = 1024 * 1024
_MANAGER = {"fieldManager": "m"}


@asynccontextmanager
async def _serving(**listening: Any) -> AsyncIterator[tuple[Api, HttpServer]]:
    server = ApiServer(Runtime.system(), ServerOptions(history=64))
    listen = Listening(tls=False, token="t", **listening)
    async with server.running(), HttpServer(server, listen) as http:
        yield Api(server), http


async def _connect(http: HttpServer) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = http.url.removeprefix("http://").split(":")
    return await asyncio.open_connection(host, int(port))


def _request(method: str, path: str, body: bytes = b"", *headers: str) -> bytes:
    lines = [
        f"{method} {path} HTTP/1.1",
        "Host: x",
        "Authorization: Bearer t",
        f"Content-Length: {len(body)}",
        *headers,
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def _answers(http: HttpServer, data: bytes, *, half_closed: bool = False) -> bytes:
    """Send bytes and return everything that comes back until the server has waited long enough for more."""
    reader, writer = await _connect(http)
    try:
        writer.write(data)
        if half_closed:
            writer.write_eof()
        async with asyncio.timeout(60):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


_POST = _request("POST", CONFIG_MAPS, json.dumps(a_config_map("a")).encode(), "Content-Type: application/json")
_VALID = (
    _POST,
    _request("GET", f"{CONFIG_MAPS}?limit=1&labelSelector=a%3Db"),
    _request("PATCH", f"{CONFIG_MAPS}/a", b'{"data":{"v":"1"}}', f"Content-Type: {MERGE}"),
    _request("DELETE", f"{CONFIG_MAPS}/a"),
    _request("GET", "/openapi/v3"),
    b"POST " + CONFIG_MAPS.encode() + b" HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer t\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
)


@st.composite
def _mutated(draw: st.DrawFn) -> bytes:
    """A request in which a few bytes are replaced, taken out or put in."""
    data = bytearray(draw(st.sampled_from(_VALID)))
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(data) - 1))
        width = draw(st.integers(0, 12))
        data[at : at + width] = draw(st.binary(max_size=12) | st.sampled_from([b"\r\n", b"\x00", b"\xff", b"%", b"{"]))
        if not data:
            return b"\r\n"
    return bytes(data)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(requests=st.lists(_mutated(), min_size=1, max_size=8))
async def test_mangled_requests_are_the_clients_fault(requests: list[bytes]) -> None:
    """No mangled request is answered with a 500, and the server goes on."""
    async with _serving(idle_timeout=0.2, body_timeout=0.2, lingering=0.1) as (_, http):
        for data in requests:
            for line in (await _answers(http, data)).split(b"\r\n"):
                assert not line.startswith(b"HTTP/1.1 5"), (data, line)
        assert b"HTTP/1.1 200" in await _answers(http, _request("GET", "/readyz"))


def _nested(form: str, depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth if form == "objects" else "[" * depth + "]" * depth


@pytest.mark.parametrize("form", ["objects", "lists"])
@pytest.mark.parametrize("depth", [100, 300, 900, 5000, 100_000])
async def test_deep_nesting_is_stored_or_refused(form: str, depth: int) -> None:
    """However deep an object is, each way to write it stores it or blames it; reading goes on."""
    api = an_api(ServerOptions(track_all_managers=True))
    await api.create(DEFINITIONS, a_definition())
    await api.create(WIDGETS, {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {}})
    deep = _nested(form, depth)
    widget = '{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"x":DEEP}}'
    schema = '{"type":"object","properties":{"a":' * depth + '{"type":"string"}' + "}}" * depth
    definition = json.dumps(a_definition()).replace(
        '{"type": "object", "x-kubernetes-preserve-unknown-fields": true}', schema
    )
    for method, path, kind, body in (
        ("POST", WIDGETS, "application/json", widget.replace('"w"', '"v"')),
        ("PUT", f"{WIDGETS}/w", "application/json", widget),
        ("PATCH", f"{WIDGETS}/w", MERGE, '{"spec":{"y":DEEP}}'),
        ("PATCH", f"{WIDGETS}/w", APPLY, widget),
        ("PATCH", f"{WIDGETS}/w", JSON_PATCH, '[{"op":"add","path":"/spec","value":DEEP}]'),
        ("POST", PODS, "application/json", '{"metadata":{"name":"p"},"spec":{"containers":DEEP}}'),
        ("PATCH", f"{PODS}/p", STRATEGIC, '{"spec":{"containers":DEEP}}'),
        ("PUT", f"{DEFINITIONS}/widgets.example.com", "application/json", definition),
        ("DELETE", f"{WIDGETS}/w", "application/json", '{"preconditions":DEEP}'),
    ):
        headers = {"content-type": kind}
        answer = await api.send(method, path, body.replace("DEEP", deep).encode(), query=_MANAGER, headers=headers)
        assert answer.status != 500, (method, path, answer.body)
    table = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    assert (await api.send("GET", WIDGETS, headers=table)).status == 200


@pytest.mark.parametrize(
    "change",
    [
        {"metadata": {"name": "a" * 10_000}},
        {"metadata": {"name": "c", "labels": {f"k{index}": "v" * 200 for index in range(5000)}}},
        {"metadata": {"name": "c", "annotations": {"k": "v" * 300_000}}},
        {"metadata": {"name": "c", "finalizers": [f"example.com/{index}" for index in range(20_000)]}},
        {"metadata": {"name": "c"}, "data": {f"k{index}": "" for index in range(60_000)}},
        {"metadata": {"name": "c"}, "data": {"k": "v" * 2_500_000}},
        {"metadata": {"name": "c", "generateName": "x" * 5000}},
        {"metadata": {"name": "c"}, "data": {"k": 10**4000}},
    ],
    ids=lambda change: "-".join((*change, *change["metadata"])),
)
async def test_absurd_sizes_are_stored_or_refused(change: Any) -> None:
    """An object of absurd size is stored, or refused with a reason: never the server's fault."""
    api = an_api(ServerOptions(track_all_managers=True))
    for method, path in (("POST", CONFIG_MAPS), ("PUT", f"{CONFIG_MAPS}/c"), ("PATCH", f"{CONFIG_MAPS}/c")):
        kind = MERGE if method == "PATCH" else "application/json"
        answer = await api.send(method, path, change, headers={"content-type": kind})
        assert answer.status in {200, 201, 400, 404, 409, 413, 422}, answer.body
    long = await api.send("GET", CONFIG_MAPS, query={"labelSelector": ",".join(f"k{index}=v" for index in range(5000))})
    assert long.status == 200


async def test_a_half_closed_connection_is_answered_or_closed() -> None:
    """A client that stops sending gets its answer or is let go; a watch of its ends, and nothing stays behind."""
    async with _serving(idle_timeout=0.2, body_timeout=0.2, lingering=0.1) as (api, http):
        for data in (_POST, _POST[:-5], _request("GET", f"{CONFIG_MAPS}?watch=true")):
            assert not (await _answers(http, data, half_closed=True)).startswith(b"HTTP/1.1 5")
        await _until_idle(http)
        assert (await api.send("GET", CONFIG_MAPS)).status == 200


async def test_a_reader_that_does_not_read_is_disconnected() -> None:
    """A client that asks for a long list and does not read it loses its connection, and the server its copy."""
    async with _serving(write_timeout=0.3, idle_timeout=0.2) as (api, http):
        for index in range(20):
            await api.create(CONFIG_MAPS, a_config_map(f"c{index}", v="x" * 900_000))
        host, port = http.url.removeprefix("http://").split(":")
        with socket.socket() as plug:
            plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            plug.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_connect(plug, (host, int(port)))
            await loop.sock_sendall(plug, _request("GET", CONFIG_MAPS))
            await _until_idle(http, seen=1)
            received = 0
            with suppress(ConnectionError):
                while chunk := await loop.sock_recv(plug, _MIB):
                    received += len(chunk)
        assert received < 18_000_000
        assert b"HTTP/1.1 200" in await _answers(http, _request("GET", "/readyz"))


@pytest.fixture
def _many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("_many_files")
async def test_a_thousand_watchers_see_everything() -> None:
    """A thousand watchers all get every change; they cost little memory, and nothing once they are gone."""
    watchers, changes = 1000, 10
    async with _serving() as (api, http), _session(http) as session:
        before = _resident()
        revision = (await api.get(CONFIG_MAPS))["metadata"]["resourceVersion"]
        query = {"watch": "true", "resourceVersion": revision}
        watches = await asyncio.gather(*(session.get(CONFIG_MAPS, params=query) for _ in range(watchers)))
        for index in range(changes):
            await api.create(CONFIG_MAPS, a_config_map(f"c{index}", v="x" * 10_000))
        for watch in watches:
            events = [json.loads(await watch.content.readline()) for _ in range(changes)]
            assert [event["object"]["metadata"]["name"] for event in events] == [
                f"c{index}" for index in range(changes)
            ]
        grown = _resident() - before
        assert grown < 500 * _MIB, f"{grown / _MIB:.0f} MiB for {watchers} watchers and as many clients"
        for watch in watches:
            watch.close()
        await _until_idle(http)
        assert (await api.send("GET", CONFIG_MAPS)).status == 200


@asynccontextmanager
async def _session(http: HttpServer) -> AsyncIterator[aiohttp.ClientSession]:
    connector = aiohttp.TCPConnector(limit=0)
    headers = {"authorization": "Bearer t"}
    async with aiohttp.ClientSession(http.url, connector=connector, headers=headers) as session:
        yield session


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


async def _until_idle(http: HttpServer, *, seen: int = 0) -> None:
    """Wait until requests have come (so many at once) and all are over."""
    async with asyncio.timeout(60):
        while http._active < seen:  # noqa: ASYNC110 - the server says nothing when a request comes or goes
            await asyncio.sleep(0.01)
        while http._active:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def test_the_requests_are_what_they_should_be() -> None:
    """The requests that get mangled are right before that."""

    async def statuses() -> list[bytes]:
        async with _serving() as (_, http):
            found = []
            for data in _VALID:
                reader, writer = await _connect(http)
                writer.write(data)
                found.append((await reader.readline()).split()[1])
                writer.close()
                with suppress(ConnectionError):
                    await writer.wait_closed()
            return found

    assert asyncio.run(statuses()) == [b"201", b"200", b"200", b"200", b"200", b"422"]

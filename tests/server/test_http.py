"""Over HTTP: who gets in, and what a careless or hostile client can do (little)."""

import asyncio
import json
import socket
import ssl
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from structlog.testing import capture_logs

from spinney.runtime import Runtime
from spinney.server import ApiServer, ServerOptions
from spinney.server.http.serving import HttpServer, Listening, RefusedAddress
from tests.server.api import CONFIG_MAPS, Api, a_config_map


@asynccontextmanager
async def _serving(options: ServerOptions | None = None, **listening: Any) -> AsyncIterator[HttpServer]:
    server = ApiServer(Runtime.system(), options)
    async with server.running(), HttpServer(server, Listening(**listening)) as http:
        yield http


@asynccontextmanager
async def _session(http: HttpServer) -> AsyncIterator[aiohttp.ClientSession]:
    context = ssl.create_default_context(cadata=http.authority.decode()) if http.authority else None
    connector = aiohttp.TCPConnector(ssl=context if context else False)
    headers = {"authorization": f"Bearer {http.token}"}
    async with aiohttp.ClientSession(http.url, connector=connector, headers=headers) as session:
        yield session


async def test_only_the_token_lets_in() -> None:
    """Without a token everything but health and version is refused; with a wrong one everything."""
    async with _serving() as http, _session(http) as session:
        async with session.get("/api/v1/nodes") as answer:
            assert answer.status == 200
        for header, health in (("Bearer wrong", 401), ("", 200)):
            async with session.get("/api/v1/nodes", headers={"authorization": header}) as answer:
                assert (answer.status, (await answer.json())["reason"]) == (401, "Unauthorized")
            async with session.get("/readyz", headers={"authorization": header}) as answer:
                assert answer.status == health


async def test_the_certificate_is_checked_by_its_authority() -> None:
    """A client that does not know the server's authority does not talk to it."""
    async with _serving() as http, aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await session.get(f"{http.url}/version")


async def test_the_kubeconfig_is_private(tmp_path: Path) -> None:
    """The kubeconfig holds the token, so only its owner can read it."""
    async with _serving() as http:
        path = tmp_path / "sub" / "config"
        http.write_kubeconfig(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        content = yaml.safe_load(path.read_text())
        assert content["users"][0]["user"]["token"] == http.token
        assert content["clusters"][0]["cluster"]["server"] == http.url


def test_other_addresses_need_to_be_meant() -> None:
    """Listening where other machines can connect takes an explicit flag."""
    with pytest.raises(RefusedAddress, match="allow_remote"):
        Listening(host="0.0.0.0")
    assert Listening(host="0.0.0.0", allow_remote=True).host == "0.0.0.0"


async def test_watches_stream() -> None:
    """A watch delivers each change when it happens."""
    watching = {"watch": "true"}
    async with _serving() as http, _session(http) as session, session.get(CONFIG_MAPS, params=watching) as watch:
        async with session.post(CONFIG_MAPS, json=a_config_map("a")) as made:
            assert made.status == 201
        events = [json.loads(await watch.content.readline()) for _ in range(2)]
        assert (events[1]["type"], events[1]["object"]["metadata"]["name"]) == ("ADDED", "a")


async def test_a_huge_body_is_refused_and_the_server_goes_on() -> None:
    """A body above the limit gets 413, and the next request is served."""
    async with _serving(max_body=10_000) as http, _session(http) as session:
        async with session.post(CONFIG_MAPS, json=a_config_map("a", v="x" * 20_000)) as answer:
            assert answer.status == 413
        async with session.get("/api/v1/nodes") as answer:
            assert answer.status == 200


async def test_a_slow_body_is_cut_off() -> None:
    """A body that does not arrive in time gets 408 instead of holding the connection."""
    async with _serving(tls=False, body_timeout=0.05, lingering=0.05) as http:
        answer = await _raw(
            http, f"POST {CONFIG_MAPS} HTTP/1.1\r\n{_headers(http)}Content-Length: 100\r\n\r\n{{".encode()
        )
        assert answer.startswith(b"HTTP/1.1 408")


async def test_slow_headers_are_cut_off() -> None:
    """A client that never finishes its headers loses its connection."""
    async with _serving(tls=False, idle_timeout=0.05) as http:
        assert await _raw(http, b"GET /api HTTP/1.1\r\nHost: x\r\n") == b""


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\x00\x01\x02\x03\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 10_000 + b"\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
    ],
)
async def test_malformed_requests_do_no_harm(request_bytes: bytes) -> None:
    """Whatever arrives, the answer is an error or a closed connection, and others are served."""
    async with _serving(tls=False, idle_timeout=0.2) as http:
        answer = await _raw(http, request_bytes)
        assert answer == b"" or answer.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4"))
        healthy = await _raw(http, f"GET /readyz HTTP/1.1\r\n{_headers(http)}Connection: close\r\n\r\n".encode())
        assert healthy.startswith(b"HTTP/1.1 200")


async def test_a_watcher_that_does_not_read_is_disconnected() -> None:
    """A client that stops reading is cut off, and writers never notice."""
    # With a short history a watcher that is behind would be told so, and the watch would end without being cut off.
    async with _serving(ServerOptions(history=10_000), tls=False, write_timeout=0.1) as http:
        host, port = http.url.removeprefix("http://").split(":")
        plug = socket.socket()
        plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        plug.setblocking(False)
        await asyncio.get_running_loop().sock_connect(plug, (host, int(port)))
        reader, writer = await asyncio.open_connection(sock=plug, limit=1024)
        writer.write(f"GET {CONFIG_MAPS}?watch=true HTTP/1.1\r\n{_headers(http)}\r\n".encode())
        await writer.drain()
        api = Api(http._server)
        await api.create(CONFIG_MAPS, a_config_map("a"))
        with capture_logs() as logs:
            written = 0
            while "slow watcher disconnected" not in {entry["event"] for entry in logs}:
                written += 1
                changed = await api.patch(f"{CONFIG_MAPS}/a", {"data": {"v": f"{written} " + "x" * 200_000}})
                assert changed["data"]["v"].startswith(f"{written} ")
                await asyncio.sleep(0)
        with suppress(ConnectionResetError):
            while await reader.read(65536):
                pass
        writer.close()


async def test_too_many_requests_are_turned_away() -> None:
    """Beyond the limit of requests at once, a client is asked to come back."""
    watching = {"watch": "true"}
    async with (
        _serving(max_requests=1) as http,
        _session(http) as session,
        session.get(CONFIG_MAPS, params=watching),
        session.get("/api/v1/nodes") as answer,
    ):
        assert (answer.status, answer.headers["retry-after"]) == (429, "1")


def _headers(http: HttpServer) -> str:
    return f"Host: x\r\nAuthorization: Bearer {http.token}\r\n"


async def _raw(http: HttpServer, data: bytes) -> bytes:
    host, port = http.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(data)
        await writer.drain()
        return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()

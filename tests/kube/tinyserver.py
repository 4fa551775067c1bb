"""A tiny real HTTP server, with or without TLS, that says who asked and streams what it is told to."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from spinney.runtime.serving import stop_serving
from tests.kube.certificates import Authority, Pair

Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class TinyServer:
    """Answers with whatever ``answer`` gives, by default with who asked and how."""

    def __init__(self) -> None:
        self.answer: Answer = echo
        self.requests: list[web.BaseRequest] = []
        self.url = ""
        self.connections = 0
        self._peers: set[object] = set()
        self._arrival = asyncio.Condition()

    async def wait_for(self, count: int) -> None:
        """Wait until so many requests have arrived."""
        async with self._arrival:
            await self._arrival.wait_for(lambda: len(self.requests) >= count)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Note the request and answer it."""
        async with self._arrival:
            self.requests.append(request)
            self._arrival.notify_all()
        self._peers.add(request.transport)
        self.connections = len(self._peers)
        return await self.answer(request)


async def echo(request: web.BaseRequest) -> web.StreamResponse:
    """Answer with what the server saw."""
    assert request.transport is not None
    peer = request.transport.get_extra_info("peercert") or {}
    names = {key: value for rdn in peer.get("subject", ()) for key, value in rdn}
    seen = {
        "kind": "Status",
        "metadata": {"name": "a"},
        "method": request.method,
        "path": request.path,
        "query": dict(request.query),
        "authorization": request.headers.get("authorization"),
        "impersonate": [request.headers.get("impersonate-user"), request.headers.getall("impersonate-group", [])],
        "content_type": request.headers.get("content-type"),
        "certificate": names.get("commonName"),
        "body": (await request.read()).decode(),
    }
    return web.json_response(seen)


async def break_off(request: web.BaseRequest) -> web.StreamResponse:
    """Answer with a line and a half, and drop the connection."""
    response = web.StreamResponse()
    await response.prepare(request)
    await response.write(b'{"a":1}\n{"b"')
    assert request.transport is not None
    request.transport.abort()
    return response


@asynccontextmanager
async def serving(
    *, pair: Pair | None = None, clients: Authority | None = None, directory: Path | None = None
) -> AsyncIterator[TinyServer]:
    """Serve on a free port; with ``pair`` over TLS, and with ``clients`` asking for client certificates."""
    context = None
    if pair is not None:
        assert directory is not None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        chain = directory / "served.pem"
        chain.write_bytes(pair.certificate + pair.key)
        context.load_cert_chain(chain)
        if clients is not None:
            context.verify_mode = ssl.CERT_OPTIONAL
            context.load_verify_locations(cadata=clients.pem.decode())
    server = TinyServer()
    runner = web.ServerRunner(web.Server(server.handle), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    server.url = f"{'https' if context else 'http'}://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await stop_serving(runner)


@asynccontextmanager
async def proxying() -> AsyncIterator[tuple[str, list[str]]]:
    """Run an HTTP proxy that tunnels to this machine, whoever is asked for; yields its URL and who was."""
    targets: list[str] = []

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        method, target, _ = head.split("\r\n", 1)[0].split(" ")
        assert method == "CONNECT"
        targets.append(target)
        port = target.rpartition(":")[2]
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(pipe(reader, there_writer), pipe(there_reader, writer))

    server = await asyncio.start_server(tunnel, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", targets


def status_answer(code: int, reason: str, message: str, **headers: str) -> web.Response:
    body = {"kind": "Status", "status": "Failure", "reason": reason, "message": message, "code": code}
    return web.Response(status=code, body=json.dumps(body), headers=headers, content_type="application/json")

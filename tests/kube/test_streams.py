"""Streams over connections of our own: whose connection they use, how they end, and who waits for whom."""

import asyncio

import pytest
from aiohttp import web

from spinney.kube.credentials import Credential
from spinney.kube.errors import ConnectionFailed, ConnectionTimedOut
from spinney.kube.http import Endpoint, HttpTransport
from spinney.kube.tls import ClientCertificate
from spinney.kube.transport import Request
from spinney.kube.wire.streams import HELD_BACK
from tests.kube.tinyserver import break_off, serving
from tests.weighing import held_by

WATCH = Request("GET", "/watch")


async def test_a_watch_goes_on_where_the_list_before_it_was_read() -> None:
    """A list and the watch that follows it need one connection, so one TLS handshake."""
    async with serving() as server:
        transport = HttpTransport(Endpoint(server.url))
        await transport.request(Request("GET", "/list"))
        async with transport.stream(WATCH) as stream:
            assert stream.status == 200
            await stream.body()
        assert server.connections == 1
        await transport.close()


async def test_a_watch_that_was_ended_leaves_its_connection_to_nobody() -> None:
    """What the server still sends on it would be taken for the next answer."""
    async with serving() as server:
        transport = HttpTransport(Endpoint(server.url))
        async with transport.stream(WATCH):
            pass
        await transport.request(Request("GET", "/list"))
        assert server.connections == 2
        await transport.close()


async def test_watches_that_ended_leave_nothing() -> None:
    """A process that watches for months, each watch for minutes, holds what it held after the first."""
    async with serving() as server:
        transport = HttpTransport(Endpoint(server.url))
        held = []
        for _ in range(3):
            async with transport.stream(WATCH) as stream:
                await stream.body()
            await transport.request(Request("GET", "/list"))  # by now the connection of the watch is closed
            held.append(held_by(transport))
        assert held[1] == held[2]
        await transport.close()


async def test_a_reader_that_falls_behind_holds_the_server_back() -> None:
    """What waits in this process to be read is bounded, and nothing of it is lost."""
    async with serving() as server:
        piece, pieces = b"x" * 65536, 20 * HELD_BACK // 65536
        written = 0

        async def pour(request: web.BaseRequest) -> web.StreamResponse:
            nonlocal written
            response = web.StreamResponse()
            await response.prepare(request)
            for _ in range(pieces):
                await response.write(piece)
                written += 1
            return response

        server.answer = pour
        transport = HttpTransport(Endpoint(server.url))
        async with transport.stream(WATCH) as stream:
            before = -1
            while written > before:  # until the server has to wait
                before = written
                for _ in range(1000):
                    await asyncio.sleep(0)
            assert written < pieces
            assert len(await stream.body()) == pieces * len(piece)
        await transport.close()


async def test_an_answer_in_gzip_that_was_not_asked_for_is_an_error() -> None:
    """Lines of a watch are never guessed out of something else."""
    async with serving() as server:

        async def packed(request: web.BaseRequest) -> web.StreamResponse:
            assert request.headers["accept-encoding"] == "identity"
            return web.Response(body=b"\x1f\x8b", headers={"content-encoding": "gzip"})

        server.answer = packed
        transport = HttpTransport(Endpoint(server.url))
        with pytest.raises(ConnectionFailed, match="gzip"):
            async with transport.stream(WATCH):
                pass
        await transport.close()


async def test_errors_of_a_stream_name_its_request() -> None:
    """Whoever reads the log sees which watch broke, once in each message."""
    async with serving() as server:
        server.answer = break_off
        transport = HttpTransport(Endpoint(server.url))
        async with transport.stream(WATCH) as stream:
            with pytest.raises(ConnectionFailed, match=f"^GET {server.url}/watch: the connection broke"):
                await stream.body()

        async def never(_: web.BaseRequest) -> web.StreamResponse:
            await asyncio.Event().wait()
            raise AssertionError

        server.answer = never
        with pytest.raises(ConnectionTimedOut, match=f"^GET {server.url}/watch: no complete answer"):
            async with transport.stream(Request("GET", "/watch", timeout=0.05)):
                pass
        await transport.close()


async def test_closing_a_transport_ends_its_streams() -> None:
    """Also those that were begun with a credential that was replaced since: whoever reads them hears of it."""
    async with serving() as server:
        server.answer = held
        transport = HttpTransport(Endpoint(server.url), Replaced())
        async with transport.stream(WATCH) as first, transport.stream(WATCH) as second:
            reading = [asyncio.create_task(stream.body()) for stream in (first, second)]
            await asyncio.sleep(0)
            await transport.close()
            for task in reading:
                with pytest.raises(ConnectionFailed):
                    await task


async def held(request: web.BaseRequest) -> web.StreamResponse:
    """Begin an answer and never end it."""
    response = web.StreamResponse()
    await response.prepare(request)
    await asyncio.Event().wait()
    return response


class Replaced:
    """A new certificate at each request, as from a plugin whose certificates live for a moment."""

    def __init__(self) -> None:
        self._asked = 0

    async def credential(self) -> Credential:
        self._asked += 1
        return Credential((), ClientCertificate(str(self._asked).encode(), b""))

    def reject(self, credential: Credential) -> bool:
        """Have no other."""
        return False

"""A server that stops leaves nothing open, whatever its clients do."""

import asyncio
import socket
import ssl
from datetime import UTC, datetime

import pytest
from aiohttp import web

from spinney.runtime.certificates import serving_certificate
from spinney.runtime.serving import stop_serving


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "TLS"])
async def test_a_client_that_never_hangs_up_loses_its_connection(secure: bool) -> None:
    """Its connection is closed when the server has stopped, and not when the garbage is next collected."""
    certificate = serving_certificate(("localhost",), now=datetime.now(UTC))

    async def answer(request: web.BaseRequest) -> web.Response:
        return web.Response(text="here")

    runner = web.ServerRunner(web.Server(answer), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=certificate.context() if secure else None).start()
    client = await asyncio.to_thread(_asking, runner.addresses[0][1], certificate.authority if secure else None)
    server = runner.server
    assert isinstance(server, web.Server)
    (transport,) = (each.transport for each in server.connections)
    assert transport is not None
    held = transport.get_extra_info("socket")

    await stop_serving(runner)

    assert held.fileno() == -1
    client.close()


def _asking(port: int, authority: bytes | None) -> socket.socket:
    """Return a connection on which a request was answered."""
    connection = socket.create_connection(("127.0.0.1", port))
    if authority is not None:
        context = ssl.create_default_context(cadata=authority.decode())
        connection = context.wrap_socket(connection, server_hostname="localhost")
    connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert connection.recv(1024).startswith(b"HTTP/1.1 200")
    return connection

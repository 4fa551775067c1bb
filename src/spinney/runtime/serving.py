"""Ending a server so that nothing of it stays open."""

import asyncio

from aiohttp import web


async def stop_serving(runner: web.BaseRunner) -> None:
    """Stop a server, and with it the connections of clients that do not hang up.

    Over TLS a connection that is closed waits for the client's farewell. A client that stays silent would keep the
    socket open beyond the server, and beyond the event loop.
    """
    server = runner.server
    connections = server.connections if isinstance(server, web.Server) else []
    transports = [each.transport for each in connections if each.transport is not None]
    await runner.cleanup()
    for transport in transports:
        transport.abort()
    await asyncio.sleep(0)  # sockets are closed when the loop comes round

"""Ending a server so that nothing of it stays open."""

import asyncio

from aiohttp import web


async def stop_serving(runner: web.BaseRunner) -> None:
    """Stop a server, and with it the connections of clients that do not hang up.

    Over TLS a connection that is closed waits for the client's farewell. A client that stays silent would keep the
    socket open beyond the server, and beyond the event loop. A connection that was accepted, and whose server is
    closed before the loop has come round, is forgotten by asyncio (in 3.11) while it is open.
    """
    loop = asyncio.get_running_loop()
    for listener in _listeners(runner):
        loop.remove_reader(listener)
    await asyncio.sleep(0)  # what was accepted becomes a connection
    server = runner.server
    connections = server.connections if isinstance(server, web.Server) else []
    transports = [each.transport for each in connections if each.transport is not None]
    await runner.cleanup()
    for transport in transports:
        transport.abort()
    await asyncio.sleep(0)  # sockets are closed when the loop comes round


def _listeners(runner: web.BaseRunner) -> list[int]:
    servers = (site._server for site in runner.sites)  # noqa: SLF001 - aiohttp tells their addresses only
    return [each.fileno() for server in servers if isinstance(server, asyncio.Server) for each in server.sockets]

"""Beginning to serve, with what to do where that cannot be, and ending a server so that nothing of it stays open."""

import asyncio
import errno
import ssl
from typing import Final

from aiohttp import web

_WHY: Final = {
    errno.EADDRINUSE: "is in use by another process",
    errno.EACCES: "may not be listened on by this user",
    errno.EADDRNOTAVAIL: "is no address of this machine",
}


class CannotListen(OSError):
    """Nobody can be served there; the text says where, why not, and what chooses another place."""


async def listen(
    runner: web.BaseRunner, host: str | None, port: int, *, setting: str, tls: ssl.SSLContext | None = None
) -> None:
    """Serve on an address, ``None`` for all of them; raises :class:`CannotListen`.

    ``setting`` is the option, or the field of a configuration, that chooses the place; empty where nothing does.
    """
    try:
        await web.TCPSite(runner, host, port, ssl_context=tls).start()
    except OSError as error:
        where = f"port {port}" if host is None else f"{f'[{host}]' if ':' in host else host}:{port}"
        # Since Python 3.13 asyncio passes over addresses that are not to be had, and numbers nothing if none is left.
        number = errno.EADDRNOTAVAIL if error.errno is None else error.errno
        why = _WHY.get(number, f"cannot be listened on: {error.strerror or error}")
        raise CannotListen(f"{where} {why}{f'; choose another with {setting}' if setting else ''}") from error


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

"""How a command runs: connecting to a cluster, and ending cleanly on Ctrl-C and SIGTERM."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import click

from spinney.kube.client import Client
from spinney.kube.config import connect_by_default, load_kubeconfig
from spinney.kube.errors import KubeError
from spinney.runtime import Runtime

INTERRUPTED = 130  # what shells report for Ctrl-C


def until_interrupted(main: Coroutine[Any, Any, None]) -> None:
    """Run ``main`` until it ends or the process is told to; errors people can act on become one line."""
    try:
        asyncio.run(_cancelled_by_signal(main))
    except KubeError as error:
        raise click.ClickException(str(error)) from error


async def connected(
    use: Callable[[Client, Runtime], Awaitable[None]], *, kubeconfig: Path | None, field_manager: str = "spinney"
) -> None:
    """Call ``use`` with a client of the named cluster, or of the one this process runs in or kubectl would use."""
    runtime = Runtime.system()
    transport = load_kubeconfig(kubeconfig, runtime=runtime) if kubeconfig else connect_by_default(runtime=runtime)
    try:
        await use(Client(transport, runtime, field_manager=field_manager), runtime)
    finally:
        await transport.close()
        runtime.executor.close()


async def _cancelled_by_signal(main: Coroutine[Any, Any, None]) -> None:
    task = asyncio.ensure_future(main)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        raise SystemExit(INTERRUPTED) from None

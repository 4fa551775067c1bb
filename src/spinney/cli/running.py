"""How a command ends: cleanly on Ctrl-C and SIGTERM, and with one line for what people can act on."""

import asyncio
import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

T = TypeVar("T")


def until_interrupted(main: Coroutine[Any, Any, T]) -> T:
    """Run ``main`` until it ends or the process is told to."""
    return asyncio.run(_cancelled_by_signal(main))


async def _cancelled_by_signal(main: Coroutine[Any, Any, T]) -> T:
    task = asyncio.ensure_future(main)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        raise SystemExit(128 + signal.SIGINT) from None


@contextmanager
def in_one_line(*errors: type[Exception]) -> Iterator[None]:
    """Have the command end with one line, without a traceback, if one of ``errors`` is raised inside the block."""
    try:
        yield
    except errors as error:
        raise click.ClickException(str(error)) from error

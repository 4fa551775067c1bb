"""How a command ends: cleanly on Ctrl-C and SIGTERM, and with one line for what people can act on."""

import asyncio
import signal
import threading
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import click

T = TypeVar("T")

_INTERRUPTED: Final = {number: 128 + number for number in (signal.SIGINT, signal.SIGTERM)}
"""The exit codes by which shells tell what ended a command."""


def until_interrupted(main: Coroutine[Any, Any, T]) -> T:
    """Run ``main`` until it ends or is interrupted; the exit code then names the signal."""
    return asyncio.run(_cancelled_by_signal(main, _INTERRUPTED))


def until_told_to_go(main: Coroutine[Any, Any, T]) -> T:
    """Run ``main`` as a process of a cluster, which has not failed when SIGTERM ends it: the exit code is then 0."""
    return asyncio.run(_cancelled_by_signal(main, {**_INTERRUPTED, signal.SIGTERM: 0}))


async def _cancelled_by_signal(main: Coroutine[Any, Any, T], codes: Mapping[signal.Signals, int]) -> T:
    task = asyncio.ensure_future(main)
    loop = asyncio.get_running_loop()
    came: list[signal.Signals] = []

    def cancel(number: signal.Signals) -> None:
        came.append(number)
        task.cancel()

    for number in codes:
        loop.add_signal_handler(number, cancel, number)
    try:
        return await task
    except asyncio.CancelledError:
        raise SystemExit(codes[came[0] if came else signal.SIGINT]) from None


class Ending:
    """Ctrl-C and SIGTERM for a command that goes on until it is told to end, and then has something to finish. Mutable.

    What :func:`until_interrupted` runs in between ends at once, with its exit code, and takes the signals for itself;
    so :meth:`listen` is called again after it.
    """

    def __init__(self) -> None:
        self._came = threading.Event()

    def listen(self) -> None:
        """Have signals no longer end the process, but be noted."""
        for number in _INTERRUPTED:
            signal.signal(number, lambda *_: self._came.set())

    def wait(self, seconds: float) -> bool:
        """Wait for so long, or until a signal came; tell whether one did."""
        return self._came.wait(seconds)


@contextmanager
def signals_restored() -> Iterator[None]:
    """Have Ctrl-C and SIGTERM do after the block what they did before."""
    before = {number: signal.getsignal(number) for number in _INTERRUPTED}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def in_one_line(*errors: type[Exception]) -> Iterator[None]:
    """Have the command end with one line, without a traceback, if one of ``errors`` is raised inside the block."""
    try:
        yield
    except errors as error:
        raise click.ClickException(str(error)) from error

"""What code of others raises is caught; what comes from outside passes it."""

import asyncio

import pytest

from spinney.runtime import ThreadExecutor
from spinney.runtime.faults import Stopping, printable, raised, raised_later, told
from spinney.runtime.tasks import end


class Panic(BaseException):
    """What is no ``Exception``."""


def caught(error: BaseException) -> bool:
    """Tell whether an error is taken for the fault of what was called."""
    try:
        raise error
    except raised():
        return True


async def caught_later(error: BaseException) -> bool:
    try:
        await asyncio.sleep(0)
        raise error
    except raised_later():
        return True


@pytest.mark.parametrize("kind", [ValueError, SystemExit, Panic, GeneratorExit, asyncio.CancelledError])
def test_whatever_is_raised_is_the_fault_of_what_was_called(kind: type[BaseException]) -> None:
    """Nothing that a function raises by itself goes on to its caller's caller."""
    assert caught(kind())


@pytest.mark.parametrize("kind", [KeyboardInterrupt, Stopping])
def test_what_comes_from_outside_passes(kind: type[BaseException]) -> None:
    """A user's interrupt, and the end of the work, stop it whatever is being called."""
    with pytest.raises(kind):
        caught(kind())


async def test_no_user_interrupts_a_worker_thread() -> None:
    """An interrupt raised there was raised by what runs there."""
    executor = ThreadExecutor()
    assert await executor.run(caught, KeyboardInterrupt())
    executor.close()


@pytest.mark.parametrize("kind", [ValueError, SystemExit, Panic, asyncio.CancelledError])
async def test_the_same_holds_for_what_is_awaited(kind: type[BaseException]) -> None:
    """A cancellation that nobody asked for is a fault, too."""
    assert await caught_later(kind())


async def test_a_task_that_is_cancelled_ends() -> None:
    """A cancellation of the task itself passes."""
    ended = []

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        except raised_later():
            ended.append("taken for a fault")

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    await end(waiting)
    assert waiting.cancelled()
    assert not ended


def test_a_text_that_no_encoding_has_is_told_with_escapes() -> None:
    """Halves of characters, as in names of files that are not UTF-8, are written out."""
    assert printable("caf\udce9 ☕") == "caf\\udce9 ☕"
    assert told(ValueError("\ud800")) == "ValueError: \\ud800"

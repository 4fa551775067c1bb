"""Coroutines that run at the same time: all give something, or all have ended; tasks in the background end, too."""

import asyncio

import pytest

from spinney.runtime.tasks import BackgroundTasks, in_background, together
from tests.virtual_time import on_virtual_time


@on_virtual_time
async def test_what_each_gives_comes_in_order() -> None:
    """Answers stand in the order of the questions, whichever came first."""

    async def after(seconds: float) -> float:
        await asyncio.sleep(seconds)
        return seconds

    assert list(await together(after(3), after(1), after(2))) == [3, 1, 2]


@on_virtual_time
async def test_nothing_runs_on_after_a_failure() -> None:
    """When the error of one is seen, the others have been cancelled and have ended."""
    ended = []

    async def long() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(1)
            ended.append("long")

    async def refused() -> None:
        raise LookupError("refused")

    with pytest.raises(LookupError, match="refused"):
        await together(long(), refused())

    assert ended == ["long"]


@on_virtual_time
async def test_what_is_begun_while_others_end_is_waited_for() -> None:
    """A task may begin another as its last act; whoever waits for the end waits for that as well."""
    background, ended = BackgroundTasks(), []

    async def last() -> None:
        await asyncio.sleep(5)
        ended.append("last")

    async def first() -> None:
        await asyncio.sleep(1)
        background.begin(last())
        ended.append("first")

    background.begin(first())
    await background.finish()

    assert ended == ["first", "last"]


@on_virtual_time
async def test_a_block_ends_with_what_fails_beside_it() -> None:
    """What waits for the work of a task that failed does not wait for ever: it gets the error, as it was raised."""
    cause = OSError("no disk")

    async def broken() -> None:
        await asyncio.sleep(1)
        raise LookupError("refused") from cause

    with pytest.raises(LookupError, match="refused") as raised:
        async with in_background(broken(), asyncio.Event().wait()):
            await asyncio.Event().wait()

    assert raised.value.__cause__ is cause


@on_virtual_time
async def test_what_a_block_raises_comes_out_of_it_as_it_is() -> None:
    """Tasks beside a block do not change its errors, and have ended then."""
    beside: list[asyncio.Task[object]] = []

    async def refused() -> None:
        async with in_background(asyncio.Event().wait()) as tasks:
            beside.extend(tasks)
            raise LookupError("refused")

    with pytest.raises(LookupError, match="refused"):
        await refused()

    assert all(task.cancelled() for task in beside)
